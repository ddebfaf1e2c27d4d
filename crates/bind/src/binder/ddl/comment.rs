//! COMMENT ON: what is commented on, and who may.

use throng_types::error::{Severity, state};
use throng_types::{Error, Result};

use crate::binder::Binder;
use crate::command::{Ddl, Target, TargetKind};
use throng_catalog::system::extension;
use throng_catalog::{Relation, builtin};
use throng_syntax::parse::ast::{self, ObjectKind};

impl Binder<'_> {
    pub(in crate::binder) fn comment(
        &mut self,
        kind: ObjectKind,
        name: &ast::Name,
        column: Option<&str>,
        text: Option<&str>,
    ) -> Result<Ddl> {
        // A dump may be restored into a database of another name.
        if kind == ObjectKind::Database
            && let Err(missing) = self.database(name.last())
        {
            self.notices.push(missing.severity(Severity::Warning));
            return Ok(Ddl::Nothing { tag: "COMMENT" });
        }
        Ok(Ddl::Comment {
            target: self.commented(kind, name, column)?,
            text: text.map(str::to_owned),
        })
    }

    fn commented(
        &mut self,
        kind: ObjectKind,
        name: &ast::Name,
        column: Option<&str>,
    ) -> Result<Target> {
        match kind {
            ObjectKind::DomainConstraint => self.domain_constraint(name, column.unwrap_or("")),
            ObjectKind::Other("extension") => self.find_extension(name.last()),
            ObjectKind::Other("language") if let Some(oid) = extension::language(name.last()) => {
                self.must_own(builtin::SUPERUSER, "language", name.last())?;
                let kind = TargetKind::Language;
                Ok(Target { kind, oid })
            }
            ObjectKind::Column if matches!(self.find_relation(name)?, Some(Relation::View(_))) => {
                let Some(Relation::View(view)) = self.find_relation(name)? else {
                    return Err(Error::internal("a view that was found is gone"));
                };
                self.must_own(view.owner, "view", &view.name)?;
                let wanted = column.unwrap_or("");
                let place = view.columns.iter().position(|c| c.name == wanted);
                let Some(place) = place else {
                    let message = format!(
                        "column \"{wanted}\" of relation \"{}\" does not exist",
                        view.name
                    );
                    return Err(Error::new(state::UNDEFINED_COLUMN, message));
                };
                Ok(Target {
                    kind: TargetKind::ViewColumn(place as u16 + 1),
                    oid: view.oid,
                })
            }
            ObjectKind::Column
                if self.find_relation(name)?.is_none() && self.made_type(name).is_some() =>
            {
                self.composite_column(name, column.unwrap_or(""))
            }
            ObjectKind::Column => {
                let Some(table) = self.owned_table(name, false)? else {
                    return Err(Error::internal("a table that was found is gone"));
                };
                let found = self.target_column(&table, column.unwrap_or(""), name.pos);
                let attnum = found.map_err(|mut e| {
                    e.fields_mut().position = None;
                    e
                })?;
                Ok(Target {
                    kind: TargetKind::Column(attnum),
                    oid: table.oid,
                })
            }
            ObjectKind::Constraint => {
                let Some(table) = self.owned_table(name, false)? else {
                    return Err(Error::internal("a table that was found is gone"));
                };
                let constraint = column.unwrap_or("");
                let oid = self
                    .table_constraint_named(&table, constraint)
                    .map_err(|_| {
                        let message = format!(
                            "constraint \"{constraint}\" for table \"{}\" does not exist",
                            table.name
                        );
                        Error::new(state::UNDEFINED_OBJECT, message)
                    })?;
                Ok(Target {
                    kind: TargetKind::Constraint,
                    oid,
                })
            }
            _ => match self.find_object(kind, name) {
                Err(e) if e.code() == state::UNDEFINED_TABLE => {
                    let message = format!("relation \"{name}\" does not exist");
                    Err(Error::new(state::UNDEFINED_TABLE, message))
                }
                Err(mut e) if e.code() == state::WRONG_OBJECT_TYPE => {
                    e.fields_mut().hint = None;
                    Err(e)
                }
                found => found,
            },
        }
    }
}
