//! CREATE, ALTER and DROP of extensions, and the functions that one brings.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use crate::binder::{BindContext, Binder};
use crate::command::{Ddl, ExtensionDdl, Target, TargetKind};
use throng_catalog::system::extension;
use throng_catalog::{RoutineBody, RoutineDef, ViewUse, builtin};
use throng_syntax::parse::{
    self,
    ast::{self, ExtensionAction, ExtensionStatement, Statement},
};
use throng_values::acl::right;
use throng_values::func::Volatility;
use throng_values::func::extension::{Extension, Native, known};

impl Binder<'_> {
    pub(in crate::binder) fn extension(&mut self, statement: &ExtensionStatement) -> Result<Ddl> {
        let name = statement.name.as_str();
        Ok(match &statement.action {
            ExtensionAction::Create {
                if_not_exists,
                schema,
                version,
                cascade,
            } => {
                if extension::named(self.catalog(), name).is_some() {
                    let message = format!("extension \"{name}\" already exists");
                    if !if_not_exists {
                        return Err(Error::new(state::DUPLICATE_OBJECT, message));
                    }
                    let message = format!("{message}, skipping");
                    self.notice(Error::new(state::DUPLICATE_OBJECT, message));
                    return Ok(Ddl::Nothing {
                        tag: "CREATE EXTENSION",
                    });
                }
                let known = known(name).ok_or_else(|| not_available(name))?;
                has_version(known, version.as_deref())?;
                let schema = match schema {
                    Some(schema) => self.schema(schema)?,
                    None => self.ctx.creation_schema.ok_or_else(|| {
                        let message = "no schema has been selected to create in";
                        Error::new(state::INVALID_SCHEMA_NAME, message)
                    })?,
                };
                self.may_install(known)?;
                Ddl::Extension(ExtensionDdl::Create {
                    name: name.to_owned(),
                    schema,
                    cascade: *cascade,
                    owner: self.ctx.user,
                })
            }
            ExtensionAction::Update(version) => {
                let target = self.find_extension(name)?;
                let Some(known) = known(name) else {
                    let what = format!("updating extension {name}");
                    return Err(Error::unsupported(what));
                };
                if let Some(version) = version.as_ref().filter(|v| *v != known.version) {
                    let def = self.catalog().extension(target.oid);
                    let from = def.map_or("", |def| &def.version);
                    let message = format!(
                        "extension \"{name}\" has no update path from version \"{from}\" to \
                         version \"{version}\""
                    );
                    return Err(Error::new(state::INVALID_PARAMETER_VALUE, message));
                }
                Ddl::Extension(ExtensionDdl::Update {
                    extension: target.oid,
                })
            }
            ExtensionAction::SetSchema(schema) => {
                let target = self.find_extension(name)?;
                let schema = self.schema(schema)?;
                if !known(name).is_some_and(|e| e.relocatable) {
                    let message = format!("extension \"{name}\" does not support SET SCHEMA");
                    return Err(Error::new(state::FEATURE_NOT_SUPPORTED, message));
                }
                Ddl::Extension(ExtensionDdl::SetSchema {
                    extension: target.oid,
                    schema,
                })
            }
        })
    }

    /// An extension that is there, and is the user's to change.
    pub(in crate::binder) fn find_extension(&self, name: &str) -> Result<Target> {
        let Some(oid) = extension::named(self.catalog(), name) else {
            let message = format!("extension \"{name}\" does not exist");
            return Err(Error::new(state::UNDEFINED_OBJECT, message));
        };
        let def = self.catalog().extension(oid);
        let owner = def.map_or(builtin::SUPERUSER, |def| def.owner);
        self.must_own(owner, "extension", name)?;
        let kind = TargetKind::Extension;
        Ok(Target { kind, oid })
    }

    fn may_install(&self, extension: &Extension) -> Result<()> {
        let catalog = self.catalog();
        let may_create = catalog.database_rights(self.ctx.user, right::CREATE) != 0;
        if catalog.is_superuser(self.user) || extension.trusted && may_create {
            return Ok(());
        }
        let message = format!(
            "permission denied to create extension \"{}\"",
            extension.name
        );
        let hint = match extension.trusted {
            true => "Must have CREATE privilege on current database to create this extension.",
            false => "Must be superuser to create this extension.",
        };
        Err(Error::new(state::INSUFFICIENT_PRIVILEGE, message).hint(hint))
    }

    /// A function of an extension as it is kept, without its oid.
    fn native_routine(
        &mut self,
        extension: &Extension,
        native: &Native,
        schema: Oid,
    ) -> Result<RoutineDef> {
        let text = format!(
            "CREATE FUNCTION {} LANGUAGE c AS 'library', 'symbol'",
            native.declaration
        );
        let parsed = parse::parse(&text)?;
        let Some(Statement::CreateRoutine(create)) = parsed.first().map(|p| &p.statement) else {
            return Err(Error::internal("a declaration that is no function's"));
        };
        let create: &ast::CreateRoutine = create;
        let attributes = self.attributes(&create.options, create.kind)?;
        let mut uses = Vec::new();
        let args = self.routine_args(create, true, &mut uses)?;
        let returned = self.returned(create, &args, true, &mut uses)?;
        uses.sort_unstable();
        uses.dedup();
        let used = |object| ViewUse {
            object,
            columns: vec![],
        };
        Ok(RoutineDef {
            oid: Oid::NONE,
            schema,
            name: create.name.last().to_owned(),
            owner: builtin::SUPERUSER,
            kind: create.kind,
            args,
            ret: returned.ty,
            ret_domain: returned.domain,
            row_of: returned.row_of,
            set: returned.setof,
            strict: attributes.strict.unwrap_or(false),
            volatility: attributes.volatility.unwrap_or(Volatility::Volatile),
            security_definer: false,
            leakproof: attributes.leakproof.unwrap_or(false),
            parallel: attributes.parallel.unwrap_or('s'),
            cost: attributes.cost.unwrap_or(1.0),
            rows: attributes.rows.unwrap_or(match returned.setof {
                true => 1000.0,
                false => 0.0,
            }),
            settings: vec![],
            body: RoutineBody::Native {
                extension: extension.name.to_owned(),
                symbol: native.symbol().to_owned(),
            },
            uses: uses.into_iter().map(used).collect(),
        })
    }
}

/// The functions of an extension in a schema, without their oids.
pub fn native_routines(
    extension: &Extension,
    schema: Oid,
    ctx: &BindContext<'_>,
) -> Result<Vec<RoutineDef>> {
    let mut binder = Binder::new(ctx);
    let natives = extension.functions.iter();
    natives
        .map(|native| binder.native_routine(extension, native, schema))
        .collect()
}

#[cold]
pub(crate) fn not_available(name: &str) -> Error {
    let message = format!("extension \"{name}\" is not available");
    Error::new(state::FEATURE_NOT_SUPPORTED, message)
        .hint("Throng has no extension of this name; pg_available_extensions lists those it has.")
}

fn has_version(extension: &Extension, version: Option<&str>) -> Result<()> {
    match version.filter(|version| *version != extension.version) {
        None => Ok(()),
        Some(version) => {
            let message = format!(
                "extension \"{}\" has no installation script nor update path for version \
                 \"{version}\"",
                extension.name
            );
            Err(Error::new(state::INVALID_PARAMETER_VALUE, message))
        }
    }
}
