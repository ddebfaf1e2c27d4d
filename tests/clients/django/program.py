"""Django: its own migrations, a model's life, inspectdb."""

import io
import os
import sys
from pathlib import Path

import django
from django.conf import settings

sys.path.append(str(Path(__file__).resolve().parent.parent))
from report import Report, same  # noqa: E402

check = Report()
SCHEMA = "shop_d"

settings.configure(
    DATABASES={"default": {
        "ENGINE": "django.db.backends.postgresql", "NAME": os.environ.get("PGDATABASE", "postgres"), "USER": os.environ.get("PGUSER", "postgres"),
        "PASSWORD": os.environ.get("PGPASSWORD", ""), "HOST": os.environ.get("PGHOST", "127.0.0.1"), "PORT": os.environ.get("PGPORT", "5432"),
        "OPTIONS": {"options": f"-c search_path={SCHEMA}", "server_side_binding": os.environ.get("DJANGO_BINDING") == "server"}}},
    INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "django.contrib.admin", "django.contrib.messages", "django.contrib.postgres", "shop"],
    DEFAULT_AUTO_FIELD="django.db.models.BigAutoField", USE_TZ=True, PASSWORD_HASHERS=["django.contrib.auth.hashers.MD5PasswordHasher"], SECRET_KEY="of these checks")
django.setup()

from django.contrib.auth.models import Group, User  # noqa: E402
from django.contrib.postgres.aggregates import ArrayAgg  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db import IntegrityError, connection, models, transaction  # noqa: E402
from django.db.models import Avg, Count, Exists, F, OuterRef, Q, Subquery, Sum, Window  # noqa: E402
from django.db.models.functions import Coalesce, Lower, Rank, TruncMonth  # noqa: E402
from django.utils import timezone  # noqa: E402
from shop.models import Item  # noqa: E402


@check("migrate: all of Django's own, then nothing left to do")
def migrate():
    with connection.cursor() as c:
        c.execute(f"drop schema if exists {SCHEMA} cascade")
        c.execute(f"create schema {SCHEMA}")
    call_command("migrate", verbosity=0, interactive=False)
    out = io.StringIO()
    call_command("showmigrations", "--plan", stdout=out)
    assert "[ ]" not in out.getvalue() and "auth.0012" in out.getvalue(), out.getvalue()


@check("schema: a model's table made and altered")
def schema():
    with connection.schema_editor() as editor:
        editor.create_model(Item)
    field = models.IntegerField(default=7)
    field.set_attributes_from_name("stock")
    field.model = Item
    with connection.schema_editor() as editor:
        editor.add_field(Item, field)
        wider = models.BigIntegerField(null=True, db_index=True)
        wider.set_attributes_from_name("stock")
        wider.model = Item
        editor.alter_field(Item, field, wider)
        editor.remove_field(Item, wider)


@check("orm: queries, aggregates, windows, JSON and arrays")
def orm():
    ann = User.objects.create_user("ann", "a@x", "secret")
    assert ann.check_password("secret")
    group = Group.objects.create(name="buyers")
    items = Item.objects.bulk_create([Item(name=f"n{i}", price=i, tags=["a", f"t{i}"], doc={"k": i, "l": [i]}, owner=ann) for i in range(100)])
    same(items[0].pk, 1)
    items[0].groups.add(group)
    items[1].groups.set([group])
    same(Item.objects.filter(groups__name="buyers").count(), 2)
    same(Item.objects.aggregate(Sum("price"), Avg("price"), n=Count("pk", filter=Q(price__gt=50))), {"price__sum": 4950, "price__avg": 49.5, "n": 49})
    same(list(Item.objects.filter(doc__k=5).values_list("name", flat=True)), ["n5"])
    same(Item.objects.filter(doc__l__contains=[5]).count(), 1)
    same(Item.objects.filter(doc__has_key="k").count(), 100)
    same(Item.objects.filter(tags__contains=["t7"]).get().name, "n7")
    same(Item.objects.filter(tags__overlap=["t7", "t8"], tags__len=2).count(), 2)
    same(Item.objects.filter(name__iregex="^N1[0-2]$").count(), 3)
    same(Item.objects.filter(Q(name__icontains="N9") | Q(name__istartswith="n8")).count(), 22)
    same(Item.objects.annotate(place=Window(Rank(), order_by=F("price").desc())).order_by("place").first().name, "n99")
    same(User.objects.annotate(last=Subquery(Item.objects.filter(owner=OuterRef("pk")).order_by("-price").values("name")[:1])).get().last, "n99")
    same(User.objects.filter(Exists(Item.objects.filter(owner=OuterRef("pk"), price__gt=98))).count(), 1)
    same(Item.objects.filter(pk__lte=3).aggregate(names=ArrayAgg("name", ordering="-name"))["names"], ["n2", "n1", "n0"])
    same(Item.objects.annotate(month=TruncMonth("made")).values("month").annotate(n=Count("pk")).get()["n"], 100)
    same(Item.objects.filter(price__lt=3).update(price=F("price") + 1, name=Lower(Coalesce("name", F("name")))), 3)
    same(Item.objects.bulk_create([Item(pk=1, name="again", price=1)], update_conflicts=True, unique_fields=["id"], update_fields=["name"])[0].pk, 1)
    same((Item.objects.get(pk=1).name, Item.objects.get_or_create(name="again", defaults={"price": 1})[1], Item.objects.update_or_create(name="new", defaults={"price": 2})[1]), ("again", False, True))
    Item.objects.filter(pk=2).update(day="2024-02-29", long=timezone.timedelta(days=1, seconds=5), key="a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", raw=b"\0\xff")
    two = Item.objects.select_related("owner").prefetch_related("groups").get(pk=2)
    same((str(two.day), two.long.total_seconds(), bytes(two.raw), two.owner.username), ("2024-02-29", 86405.0, b"\0\xff", "ann"))
    same(sum(1 for _ in Item.objects.iterator(chunk_size=10)), 101)
    same(list(Item.objects.filter(pk=3).values("pk").union(Item.objects.filter(pk=4).values("pk")).order_by("pk").values_list("pk", flat=True)), [3, 4])
    same(Item.objects.values("owner").distinct().count(), 2)
    same(Item.objects.order_by("owner", "-price").distinct("owner").count(), 2)
    assert "Scan" in Item.objects.filter(pk=1).explain()
    same(Item.objects.in_bulk([3, 4]).keys(), {3, 4})


@check("transactions: atomic blocks, locks, deferred constraints")
def transactions():
    with transaction.atomic():
        Group.objects.create(name="one")
        try:
            with transaction.atomic():
                Group.objects.create(name="one")
            raise AssertionError("twice")
        except IntegrityError:
            pass
        same(Group.objects.select_for_update(skip_locked=True).filter(name="one").count(), 1)
        same(Group.objects.select_for_update(of=("self",)).get(name="one").name, "one")
    try:
        Item.objects.create(name="x", price=-1)
        raise AssertionError("a negative price")
    except IntegrityError as e:
        same(e.__cause__.diag.constraint_name, "solvent")
    # Django's foreign keys are deferrable: the child may come first.
    with transaction.atomic():
        Item.objects.create(name="early", owner_id=4242)
        User.objects.create(pk=4242, username="late")
    User.objects.filter(username="ann").delete()
    same(Item.objects.filter(owner__username="ann").count(), 0)


@check("inspection: inspectdb of what was made")
def inspectdb():
    out = io.StringIO()
    call_command("inspectdb", "auth_user", "shop_item", stdout=out)
    for part in ("class ShopItem", "name = models.CharField(max_length=40)", "price = models.DecimalField(max_digits=10, decimal_places=2)", "doc = models.JSONField(blank=True, null=True)",
                 "key = models.UUIDField(unique=True, blank=True, null=True)", "owner = models.ForeignKey(AuthUser, models.DO_NOTHING, blank=True, null=True)",
                 "unique_together = (('owner', 'name'),)", "username = models.CharField(unique=True, max_length=150)"):
        assert part in out.getvalue(), f"{part} not in {out.getvalue()}"
    with connection.cursor() as c:
        constraints = connection.introspection.get_constraints(c, "shop_item")
        same(sorted(n for n in constraints if n in ("solvent", "one_name", "newest", "shop_item_pkey")), ["newest", "one_name", "shop_item_pkey", "solvent"])
        same((constraints["newest"]["columns"], constraints["newest"]["orders"]), (["made", "name"], ["DESC", "ASC"]))
        same(constraints["solvent"]["check"], True)
        same(connection.introspection.get_sequences(c, "shop_item")[0]["column"], "id")


@check("flush: sequences and rows reset")
def flush():
    call_command("flush", verbosity=0, interactive=False)
    same((User.objects.count(), Group.objects.create(name="first").pk), (0, 1))


if __name__ == "__main__":
    check.run()
    with connection.cursor() as last:
        last.execute(f"drop schema if exists {SCHEMA} cascade")
