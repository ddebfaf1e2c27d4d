"""A shop's items: a column of most kinds, constraints and indexes."""

from django.contrib.auth.models import Group, User
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils import timezone


class Item(models.Model):
    name = models.CharField(max_length=40, db_index=True)
    price = models.DecimalField(max_digits=10, decimal_places=2, default=0)
    tags = ArrayField(models.CharField(max_length=10), default=list)
    doc = models.JSONField(null=True)
    made = models.DateTimeField(default=timezone.now)
    day = models.DateField(null=True)
    long = models.DurationField(null=True)
    key = models.UUIDField(null=True, unique=True)
    raw = models.BinaryField(null=True)
    owner = models.ForeignKey(User, null=True, on_delete=models.CASCADE, related_name="items")
    groups = models.ManyToManyField(Group)

    class Meta:
        constraints = [models.CheckConstraint(condition=Q(price__gte=0), name="solvent"), models.UniqueConstraint(fields=["owner", "name"], name="one_name")]
        indexes = [models.Index(fields=["-made", "name"], name="newest")]
