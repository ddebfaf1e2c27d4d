//! Extensions: installed with what they bring, brought up to date, moved.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::Run;
use crate::binder::{native_routines, not_available, stored_context};
use crate::command::{ExtensionDdl, RoutineWord, Target, TargetKind};
use throng_catalog::builtin::class;
use throng_catalog::{CommentDef, ExtensionDef, RoutineDef, TypeDef, builtin};
use throng_values::acl::Kind;
use throng_values::func::extension::{Extension, ExtensionType, known};

impl Run<'_> {
    pub(super) fn extension(&mut self, ddl: &ExtensionDdl) -> Result<()> {
        match ddl {
            ExtensionDdl::Create {
                name,
                schema,
                cascade,
                owner,
            } => self
                .create_extension(name, *schema, *cascade, *owner)
                .map(|_| ()),
            ExtensionDdl::Update { extension } => self.update_extension(*extension),
            ExtensionDdl::SetSchema { extension, schema } => {
                self.move_extension(*extension, *schema)
            }
        }
    }

    fn create_extension(
        &mut self,
        name: &str,
        schema: Oid,
        cascade: bool,
        owner: Oid,
    ) -> Result<Oid> {
        let known = known(name).ok_or_else(|| not_available(name))?;
        if self.catalog().extension_by_name(name).is_some() {
            let message = format!("extension \"{name}\" already exists");
            return Err(Error::new(state::DUPLICATE_OBJECT, message));
        }
        let mut requires = Vec::new();
        for required in known.requires {
            let installed = self
                .catalog()
                .extension_by_name(required)
                .map(|def| def.oid);
            requires.push(match installed {
                Some(oid) => oid,
                None if cascade => {
                    let message = format!("installing required extension \"{required}\"");
                    self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
                    self.create_extension(required, schema, cascade, owner)?
                }
                None => {
                    let message = format!("required extension \"{required}\" is not installed");
                    let hint = "Use CREATE EXTENSION ... CASCADE to install required extensions \
                                too.";
                    return Err(Error::new(state::UNDEFINED_OBJECT, message).hint(hint));
                }
            });
        }
        let schema = self.place(schema);
        let oid = self.host.next_oid();
        let mut def = ExtensionDef {
            oid,
            name: name.to_owned(),
            schema,
            owner,
            version: known.version.to_owned(),
            members: Vec::new(),
            requires,
        };
        self.bring_members(known, &mut def)?;
        self.edit.put(def);
        let comment = CommentDef {
            oid: self.host.next_oid(),
            class: class::EXTENSION,
            object: oid,
            column: 0,
            text: known.comment.to_owned(),
        };
        self.edit.put(comment);
        Ok(oid)
    }

    /// Makes the members that are not there.
    fn bring_members(&mut self, known: &Extension, def: &mut ExtensionDef) -> Result<()> {
        for ty in known.types {
            if !def.members.contains(&ty.oid) {
                self.add_type(ty, def.schema)?;
                def.members.push(ty.oid);
            }
        }
        let mut path = vec![builtin::PG_CATALOG, def.schema];
        let required = def.requires.iter();
        path.extend(required.filter_map(|oid| Some(self.catalog().extension(*oid)?.schema)));
        let routines = {
            let mut ctx = stored_context(self.catalog(), self.host.eval());
            ctx.search_path = &path;
            native_routines(known, def.schema, &ctx)?
        };
        for routine in routines {
            if !self.is_member(&routine, def) {
                let oid = self.add_native(routine)?;
                def.members.push(oid);
            }
        }
        Ok(())
    }

    fn add_type(&mut self, ty: &ExtensionType, schema: Oid) -> Result<()> {
        self.type_name_is_free(schema, ty.name)?;
        self.edit.put(TypeDef {
            range: None,
            oid: ty.oid,
            schema,
            name: ty.name.to_owned(),
            owner: builtin::SUPERUSER,
            labels: vec![],
            domain: None,
            fields: None,
            array_name: None,
        });
        let owner = builtin::SUPERUSER;
        self.grant_defaults(class::TYPE, ty.oid, owner, schema, Kind::Type);
        Ok(())
    }

    fn is_member(&self, routine: &RoutineDef, def: &ExtensionDef) -> bool {
        let mut members = def
            .members
            .iter()
            .filter_map(|oid| self.catalog().routine(*oid));
        members.any(|member| member.body == routine.body)
    }

    fn add_native(&mut self, mut routine: RoutineDef) -> Result<Oid> {
        self.routine_name_is_free(&routine, routine.schema, &routine.name)?;
        routine.oid = self.host.next_oid();
        let (oid, owner, schema) = (routine.oid, routine.owner, routine.schema);
        self.grant_defaults(class::PROCEDURE, oid, owner, schema, Kind::Function);
        self.edit.put(routine);
        Ok(oid)
    }

    fn installed(&self, oid: Oid) -> Result<ExtensionDef> {
        let def = self.catalog().extension(oid).map(|def| (**def).clone());
        def.ok_or_else(|| {
            let message = format!("extension with OID {oid} does not exist");
            Error::new(state::UNDEFINED_OBJECT, message)
        })
    }

    fn update_extension(&mut self, oid: Oid) -> Result<()> {
        let mut def = self.installed(oid)?;
        let known = known(&def.name).ok_or_else(|| not_available(&def.name))?;
        let before = def.clone();
        self.bring_members(known, &mut def)?;
        if def.version == known.version && def.members == before.members {
            let message = format!(
                "version \"{}\" of extension \"{}\" is already installed",
                def.version, def.name
            );
            self.notice(Error::new(state::SUCCESSFUL_COMPLETION, message));
            return Ok(());
        }
        def.version = known.version.to_owned();
        self.edit.put(def);
        Ok(())
    }

    fn move_extension(&mut self, oid: Oid, schema: Oid) -> Result<()> {
        let mut def = self.installed(oid)?;
        if def.schema == schema {
            return Ok(());
        }
        for member in &def.members {
            let kind = match self.catalog().routine(*member) {
                Some(_) => TargetKind::Routine(RoutineWord::Routine),
                None => TargetKind::Type,
            };
            let target = Target { kind, oid: *member };
            let (before, views) = (self.catalog().clone(), self.views_naming(target));
            self.set_schema(target, schema)?;
            self.rewrite_kept(&before, target)?;
            self.rewrite_views(&before, views)?;
        }
        def.schema = schema;
        self.edit.put(def);
        Ok(())
    }
    pub(super) fn own_extension(&mut self, def: &ExtensionDef, owner: Oid) {
        self.edit.put(ExtensionDef {
            owner,
            ..def.clone()
        });
    }
}
