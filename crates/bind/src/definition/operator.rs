//! Operators and casts: made and changed.

use throng_types::error::state;
use throng_types::{Error, Oid, Result};

use super::Run;
use crate::command::Ddl;
use crate::command::operator::{CreateOperator, RelatedOperator};
use throng_catalog::{CastDef, OperatorDef, ViewUse};

impl Run<'_> {
    /// An operator or a cast.
    pub(super) fn create_form(&mut self, ddl: &Ddl) -> Result<()> {
        match ddl {
            Ddl::CreateOperator(create) => self.create_operator(create),
            Ddl::CreateCast(def) => self.create_cast(def),
            _ => Err(Error::internal("neither an operator nor a cast")),
        }
    }

    fn create_operator(&mut self, create: &CreateOperator) -> Result<()> {
        let mut def = create.def.clone();
        self.uses_are_there(&def.uses)?;
        // Shells come before what names them.
        let commutator = self.related(&create.commutator, &def)?;
        let negator = self.related(&create.negator, &def)?;
        if !create.alters {
            def.schema = self.place(def.schema);
            let taken = self.operator_of(def.schema, &def.name, def.left, def.right);
            match taken {
                Some(old) if old.function.is_some() => {
                    let message = format!("operator {} already exists", def.name);
                    return Err(Error::new(state::DUPLICATE_FUNCTION, message));
                }
                Some(shell) => {
                    (def.oid, def.owner) = (shell.oid, shell.owner);
                    (def.commutator, def.negator) = (shell.commutator, shell.negator);
                }
                None => def.oid = self.host.next_oid(),
            }
        }
        let own = def.oid;
        let itself = |oid: Oid| if oid == Oid::NONE { own } else { oid };
        let (commutator, negator) = (commutator.map(itself), negator.map(itself));
        def.commutator = commutator.or(def.commutator);
        def.negator = negator.or(def.negator);
        self.edit.put(def);
        if let Some(other) = commutator.filter(|other| *other != own) {
            self.answer(other, |other| &mut other.commutator, own);
        }
        if let Some(other) = negator {
            self.answer(other, |other| &mut other.negator, own);
        }
        Ok(())
    }

    /// What is named has the namer for its own, if it had none.
    fn answer(
        &mut self,
        other: Oid,
        slot: impl Fn(&mut OperatorDef) -> &mut Option<Oid>,
        namer: Oid,
    ) {
        if let Some(other) = self.catalog().operator(other) {
            let mut other = (**other).clone();
            let slot = slot(&mut other);
            if slot.is_none() {
                *slot = Some(namer);
                self.edit.put(other);
            }
        }
    }

    /// The operator that another one names; a shell of it where it is not there, and no number
    /// where it is that one itself.
    fn related(&mut self, related: &RelatedOperator, of: &OperatorDef) -> Result<Option<Oid>> {
        Ok(match related {
            RelatedOperator::None => None,
            RelatedOperator::Itself => Some(Oid::NONE),
            RelatedOperator::There(oid) => Some(*oid),
            RelatedOperator::Shell {
                schema,
                name,
                left,
                right,
            } => {
                let schema = self.place(*schema);
                if let Some(there) = self.operator_of(schema, name, *left, *right) {
                    return Ok(Some(there.oid));
                }
                let oid = self.host.next_oid();
                self.edit.put(OperatorDef {
                    oid,
                    schema,
                    name: name.clone(),
                    owner: of.owner,
                    left: *left,
                    right: *right,
                    ret: Oid::NONE,
                    function: None,
                    commutator: None,
                    negator: None,
                    restrict: None,
                    join: None,
                    hashes: false,
                    merges: false,
                    uses: types_used(&of.uses),
                });
                Some(oid)
            }
        })
    }

    fn operator_of(
        &self,
        schema: Oid,
        name: &str,
        left: Option<Oid>,
        right: Oid,
    ) -> Option<OperatorDef> {
        let known = self.catalog().operators_in(schema, name).into_iter();
        let mut same = known.filter(|o| o.left == left && o.right == right);
        same.next().map(|def| (**def).clone())
    }

    pub(super) fn own_operator(&mut self, oid: Oid, owner: Oid) {
        if let Some(def) = self.catalog().operator(oid) {
            let mut def = (**def).clone();
            def.owner = owner;
            self.edit.put(def);
        }
    }

    pub(super) fn move_operator(&mut self, oid: Oid, schema: Oid) -> Result<()> {
        let Some(def) = self.catalog().operator(oid).cloned() else {
            return Ok(());
        };
        if def.schema == schema {
            return Ok(());
        }
        if self
            .operator_of(schema, &def.name, def.left, def.right)
            .is_some()
        {
            let place = self.catalog().schema(schema).map_or("", |s| &s.name);
            let message = format!("operator {} already exists in schema \"{place}\"", def.name);
            return Err(Error::new(state::DUPLICATE_FUNCTION, message));
        }
        self.edit.put(OperatorDef {
            schema,
            ..(*def).clone()
        });
        Ok(())
    }

    /// Those that name an operator that goes have it no more.
    pub(super) fn forget_operator(&mut self, gone: Oid) {
        let naming = |def: &OperatorDef| [def.commutator, def.negator].contains(&Some(gone));
        let all = self.catalog().operators().into_iter();
        let others: Vec<OperatorDef> = all
            .filter(|def| naming(def))
            .map(|def| (**def).clone())
            .collect();
        for mut other in others {
            other.commutator = other.commutator.filter(|oid| *oid != gone);
            other.negator = other.negator.filter(|oid| *oid != gone);
            self.edit.put(other);
        }
    }

    fn create_cast(&mut self, def: &CastDef) -> Result<()> {
        self.uses_are_there(&def.uses)?;
        let mut def = def.clone();
        if self.catalog().cast_between(def.from, def.to).is_some() {
            let name = throng_types::sqltype::type_name;
            let (from, to) = (name(def.from), name(def.to));
            let message = format!("cast from type {from} to type {to} already exists");
            return Err(Error::new(state::DUPLICATE_OBJECT, message));
        }
        def.oid = self.host.next_oid();
        self.edit.put(def);
        Ok(())
    }

    /// 42704: what a definition names has gone meanwhile.
    pub(super) fn uses_are_there(&self, uses: &[ViewUse]) -> Result<()> {
        for used in uses {
            let there = self.catalog().object(used.object).is_some()
                || self.catalog().relation(used.object).is_some()
                || self.catalog().composite(used.object).is_some();
            if !there {
                let message = format!("object with OID {} does not exist", used.object);
                return Err(Error::new(state::UNDEFINED_OBJECT, message));
            }
        }
        Ok(())
    }
}

/// Of what an operator uses, its types: a shell of the same has no functions.
fn types_used(uses: &[ViewUse]) -> Vec<ViewUse> {
    let made = throng_types::sqltype::made::is_made;
    let types = uses.iter().filter(|used| made(used.object));
    types.cloned().collect()
}
