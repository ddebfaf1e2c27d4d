//! CREATE, ALTER, DROP and COMMENT of operators.

use throng_types::error::state;
use throng_types::sqltype::{made, type_name};
use throng_types::{Error, Oid, Result, oid};

use crate::binder::Binder;
use crate::binder::ddl::definition::Definition;
use crate::binder::ddl::table::no_position;
use crate::command::operator::{CreateOperator, RelatedOperator};
use crate::command::{Ddl, Target, TargetKind};
use throng_catalog::builtin::{self, class};
use throng_catalog::system::routine::procedures;
use throng_catalog::{OperatorDef, uses_of};
use throng_syntax::parse::ast::{
    self, DefinitionItem, Name, ObjectChange, OperatorChange, OperatorName,
};
use throng_values::func::{operator_by_oid, operators_named};

const ATTRIBUTES: [&str; 14] = [
    "leftarg",
    "rightarg",
    "function",
    "procedure",
    "commutator",
    "negator",
    "restrict",
    "join",
    "hashes",
    "merges",
    "sort1",
    "sort2",
    "ltcmp",
    "gtcmp",
];

fn invalid(message: impl Into<String>) -> Error {
    Error::new(state::INVALID_FUNCTION_DEFINITION, message)
}

/// The operands of an operator and what it gives.
#[derive(Clone, Copy)]
struct Operands {
    left: Option<Oid>,
    ret: Oid,
}

impl Binder<'_> {
    pub(in crate::binder) fn create_operator(
        &mut self,
        operator: &ast::Operator,
        items: &[DefinitionItem],
    ) -> Result<Ddl> {
        let name = self.relation_like(operator);
        let schema = self.place_beside_relations(&name).map_err(no_position)?;
        let items = Definition::new(items);
        let mut uses = Vec::new();
        let left = self.operand_type(&items, "leftarg", &mut uses)?;
        let right = self.operand_type(&items, "rightarg", &mut uses)?;
        for unknown in items.others(&ATTRIBUTES) {
            let message = format!("operator attribute \"{unknown}\" not recognized");
            self.warning(Error::new(state::SYNTAX_ERROR, message));
        }
        let key = if items.has("function") {
            "function"
        } else {
            "procedure"
        };
        let Some(function) = items.name(key)? else {
            return Err(invalid("operator function must be specified"));
        };
        let Some(right) = right else {
            return Err(match left {
                None => invalid("operator argument types must be specified"),
                Some(_) => invalid("operator right argument type must be specified")
                    .detail("Postfix operators are not supported."),
            });
        };
        let given: Vec<Oid> = left.into_iter().chain([right]).collect();
        let (function, ret) = self.operator_function(&function, &given, &mut uses)?;
        self.may_use_type(ret)?;
        let operands = Operands { left, ret };
        let restrict = self.estimator(&items, "restrict", &mut uses)?;
        let join = self.estimator(&items, "join", &mut uses)?;
        let old = ["sort1", "sort2", "ltcmp", "gtcmp"];
        let merges = items.boolean("merges")? == Some(true) || old.iter().any(|o| items.has(o));
        let hashes = items.boolean("hashes")? == Some(true);
        let related = |name| items.operator(name);
        let (commutator, negator) = (related("commutator")?, related("negator")?);
        check_properties(
            operands,
            commutator.is_some(),
            negator.is_some(),
            (restrict, join),
            (merges, hashes),
        )?;
        let known = self
            .catalog()
            .operators_in(schema, &operator.name)
            .into_iter();
        let same = |o: &&std::sync::Arc<OperatorDef>| o.left == left && o.right == right;
        let shell = match known.into_iter().find(same) {
            Some(def) if def.function.is_some() => {
                let message = format!("operator {} already exists", operator.name);
                return Err(Error::new(state::DUPLICATE_FUNCTION, message));
            }
            Some(def) => {
                self.must_own(def.owner, "operator", &def.name)?;
                Some(def.oid)
            }
            None => None,
        };
        let def = OperatorDef {
            oid: shell.unwrap_or(Oid::NONE),
            schema,
            name: operator.name.clone(),
            owner: self.ctx.user,
            left,
            right,
            ret,
            function: Some(function),
            commutator: None,
            negator: None,
            restrict,
            join,
            hashes,
            merges,
            uses: uses_of(uses),
        };
        let (commutator, negator) = self.related_pair((commutator, negator), &def)?;
        Ok(Ddl::CreateOperator(Box::new(CreateOperator {
            def,
            alters: false,
            commutator,
            negator,
        })))
    }

    /// An operator's name as that of what lies in a schema.
    fn relation_like(&self, operator: &ast::Operator) -> Name {
        Name {
            parts: operator
                .schema
                .iter()
                .cloned()
                .chain([operator.name.clone()])
                .collect(),
            pos: operator.pos,
        }
    }

    fn operand_type(
        &mut self,
        items: &Definition<'_>,
        name: &str,
        uses: &mut Vec<Oid>,
    ) -> Result<Option<Oid>> {
        if items.is_none(name) {
            return Ok(None);
        }
        let Some(written) = items.type_name(name)? else {
            return Ok(None);
        };
        if written.setof {
            return Err(invalid("SETOF type not allowed for operator argument"));
        }
        let ty = self.type_of(&written).map_err(no_position)?.oid;
        self.may_use_type(ty)?;
        if made::is_made(ty) {
            uses.push(throng_types::sqltype::element_of(ty).unwrap_or(ty));
        }
        Ok(Some(ty))
    }

    /// The function behind an operator, which takes just these types, and what it gives.
    fn operator_function(
        &mut self,
        name: &Name,
        given: &[Oid],
        uses: &mut Vec<Oid>,
    ) -> Result<(Oid, Oid)> {
        if let Some(schema) = name.schema() {
            self.schema(schema)?;
        }
        let routines = self.routines_named(name);
        if let Some((_, def)) = routines.iter().find(|(_, def)| def.input_types() == given) {
            self.may_execute(def)?;
            uses.push(def.oid);
            if def.set {
                return Err(Error::unsupported("an operator that gives a set"));
            }
            return Ok((def.oid, def.declared_ret()));
        }
        let of_system = name.schema().is_none_or(|schema| schema == "pg_catalog");
        let mut known = procedures().iter().filter(|_| of_system);
        match known.find(|p| p.name == name.last() && p.args == given) {
            Some(found) => Ok((found.oid, found.ret)),
            None => {
                let list: Vec<String> = given.iter().map(|ty| type_name(*ty)).collect();
                let message = format!("function {name}({}) does not exist", list.join(", "));
                Err(Error::new(state::UNDEFINED_FUNCTION, message))
            }
        }
    }

    /// The function that guesses how many rows are left.
    fn estimator(
        &mut self,
        items: &Definition<'_>,
        name: &str,
        uses: &mut Vec<Oid>,
    ) -> Result<Option<Oid>> {
        if items.is_none(name) {
            return Ok(None);
        }
        let Some(written) = items.name(name)? else {
            return Ok(None);
        };
        let (internal, number) = (oid::INTERNAL, oid::OID);
        let given: Vec<Oid> = match name {
            "restrict" => vec![internal, number, internal, oid::INT4],
            _ => vec![internal, number, internal, oid::INT2, internal],
        };
        let (found, ret) = self.operator_function(&written, &given, uses)?;
        if ret == oid::FLOAT8 {
            return Ok(Some(found));
        }
        let what = match name {
            "restrict" => "restriction",
            _ => "join",
        };
        Err(Error::new(
            state::INVALID_OBJECT_DEFINITION,
            format!("{what} estimator function {written} must return type double precision"),
        ))
    }

    /// The operators that one names as its commutator and its negator.
    fn related_pair(
        &mut self,
        (commutator, negator): (Option<ast::Operator>, Option<ast::Operator>),
        def: &OperatorDef,
    ) -> Result<(RelatedOperator, RelatedOperator)> {
        let exchanged = (Some(def.right), def.left.unwrap_or(def.right));
        let commutator = match commutator {
            None => RelatedOperator::None,
            Some(name) => self.related("commutator", &name, exchanged, def)?,
        };
        let negator = match negator {
            None => RelatedOperator::None,
            Some(name) => self.related("negator", &name, (def.left, def.right), def)?,
        };
        match negator {
            RelatedOperator::Itself => Err(invalid("operator cannot be its own negator")),
            negator => Ok((commutator, negator)),
        }
    }

    /// The operator that another one names as its commutator or negator.
    fn related(
        &mut self,
        what: &str,
        name: &ast::Operator,
        (left, right): (Option<Oid>, Oid),
        of: &OperatorDef,
    ) -> Result<RelatedOperator> {
        let left = left.filter(|_| of.left.is_some());
        if let Some(found) = self.operator_in_path(name, left.unwrap_or(Oid::NONE), right)? {
            let of_pair = |(commutator, negator): (Option<Oid>, Option<Oid>)| match what {
                "commutator" => commutator,
                _ => negator,
            };
            let there = |oid: Oid| Some(oid).filter(|oid| *oid != Oid::NONE);
            let its = match self.catalog().operator(found).cloned() {
                Some(other) => {
                    self.must_own(other.owner, "operator", &name.name)?;
                    of_pair((other.commutator, other.negator))
                }
                None => operator_by_oid(found)
                    .and_then(|o| of_pair((there(o.commutator), there(o.negator)))),
            };
            if let Some(its) = its.filter(|its| *its != of.oid && found != of.oid) {
                let own = self.catalog().operator(its).map(|def| def.name.clone());
                let its = own.or_else(|| Some(operator_by_oid(its)?.name.to_owned()));
                return Err(invalid(format!(
                    "{what} operator {} is already the {what} of operator {}",
                    name.name,
                    its.unwrap_or_default()
                )));
            }
            return Ok(match found == of.oid {
                true => RelatedOperator::Itself,
                false => RelatedOperator::There(found),
            });
        }
        let place = self.relation_like(name);
        let schema = self.place_beside_relations(&place).map_err(no_position)?;
        let itself = (schema, &name.name, left, right) == (of.schema, &of.name, of.left, of.right);
        Ok(match itself {
            true => RelatedOperator::Itself,
            false => RelatedOperator::Shell {
                schema,
                name: name.name.clone(),
                left,
                right,
            },
        })
    }

    pub(in crate::binder) fn alter_operator(
        &mut self,
        operator: &OperatorName,
        change: &OperatorChange,
    ) -> Result<Ddl> {
        let def = self.own_operator_named(operator)?;
        let target = Target {
            kind: TargetKind::Operator,
            oid: def.oid,
        };
        match change {
            OperatorChange::Object(ObjectChange::Owner(owner)) => {
                let owner = self.role(owner)?;
                self.may_give(target, owner)?;
                Ok(Ddl::SetOwner {
                    target,
                    owner,
                    said: None,
                })
            }
            OperatorChange::Object(ObjectChange::SetSchema(schema)) => Ok(Ddl::SetSchema {
                target,
                schema: self.schema_to_move_to(target, schema)?,
                said: None,
            }),
            OperatorChange::Object(ObjectChange::Rename(_)) => {
                let message = "syntax error at or near \"RENAME\"";
                Err(Error::new(state::SYNTAX_ERROR, message))
            }
            OperatorChange::Set(items) => self.set_operator(&def, items),
        }
    }

    fn set_operator(&mut self, def: &OperatorDef, items: &[DefinitionItem]) -> Result<Ddl> {
        const SETTABLE: [&str; 6] = [
            "restrict",
            "join",
            "commutator",
            "negator",
            "merges",
            "hashes",
        ];
        const FIXED: [&str; 4] = ["leftarg", "rightarg", "function", "procedure"];
        let items = Definition::new(items);
        if let Some(name) = items.others(&SETTABLE).into_iter().next() {
            let message = match FIXED.contains(&name) {
                true => format!("operator attribute \"{name}\" cannot be changed"),
                false => format!("operator attribute \"{name}\" not recognized"),
            };
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
        let mut now = def.clone();
        let mut uses: Vec<Oid> = now.uses.iter().map(|used| used.object).collect();
        for (name, slot) in [("restrict", &mut now.restrict), ("join", &mut now.join)] {
            if items.has(name) {
                *slot = self.estimator(&items, name, &mut uses)?;
            }
        }
        for (name, slot) in [("merges", &mut now.merges), ("hashes", &mut now.hashes)] {
            match items.boolean(name)? {
                Some(true) => *slot = true,
                Some(false) if *slot => {
                    let message = format!(
                        "operator attribute \"{name}\" cannot be changed if it has already been set"
                    );
                    return Err(invalid(message));
                }
                _ => {}
            }
        }
        let operands = Operands {
            left: def.left,
            ret: def.ret,
        };
        let (commutator, negator) = (items.operator("commutator")?, items.operator("negator")?);
        check_properties(
            operands,
            commutator.is_some(),
            negator.is_some(),
            (now.restrict, now.join),
            (now.merges, now.hashes),
        )?;
        let (commutator, negator) = self.related_pair((commutator, negator), def)?;
        for (name, was, is) in [
            ("commutator", def.commutator, &commutator),
            ("negator", def.negator, &negator),
        ] {
            let same = match is {
                RelatedOperator::None => true,
                RelatedOperator::Itself => was == Some(def.oid),
                RelatedOperator::There(oid) => was == Some(*oid),
                RelatedOperator::Shell { .. } => false,
            };
            if was.is_some() && !same {
                let message = format!(
                    "operator attribute \"{name}\" cannot be changed if it has already been set"
                );
                return Err(invalid(message));
            }
        }
        now.uses = uses_of(uses);
        Ok(Ddl::CreateOperator(Box::new(CreateOperator {
            def: now,
            alters: true,
            commutator,
            negator,
        })))
    }

    pub(in crate::binder) fn drop_operators(
        &mut self,
        operators: &[OperatorName],
        if_exists: bool,
        cascade: bool,
    ) -> Result<Ddl> {
        let mut targets = Vec::new();
        for operator in operators {
            match self.droppable_operator(operator) {
                Ok(def) => targets.push(Target {
                    kind: TargetKind::Operator,
                    oid: def.oid,
                }),
                Err(e) if if_exists && e.code() != state::FEATURE_NOT_SUPPORTED => {
                    let written = match e.code() {
                        state::UNDEFINED_FUNCTION => {
                            format!("operator {} does not exist", written(&operator.name))
                        }
                        _ => e.message().to_owned(),
                    };
                    let notice = format!("{written}, skipping");
                    self.notice(Error::new(state::SUCCESSFUL_COMPLETION, notice));
                }
                Err(e) => return Err(e),
            }
        }
        Ok(match targets.is_empty() {
            true => Ddl::Nothing {
                tag: "DROP OPERATOR",
            },
            false => Ddl::Drop { targets, cascade },
        })
    }

    pub(in crate::binder) fn comment_operator(
        &mut self,
        operator: &OperatorName,
        text: Option<String>,
    ) -> Result<Ddl> {
        let oid = self.find_operator(operator)?;
        let owner = self.catalog().operator(oid).map(|def| def.owner);
        let owner = owner.unwrap_or(builtin::SUPERUSER);
        self.must_own(owner, "operator", &operator.name.name)?;
        let kind = TargetKind::BuiltIn(class::OPERATOR);
        let target = Target { kind, oid };
        Ok(Ddl::Comment { target, text })
    }

    /// The same, of one to drop: what is built in stays.
    fn droppable_operator(
        &mut self,
        operator: &OperatorName,
    ) -> Result<std::sync::Arc<OperatorDef>> {
        let oid = self.find_operator(operator)?;
        let Some(built_in) = operator_by_oid(oid) else {
            return self.own_operator_named(operator);
        };
        self.must_own(builtin::SUPERUSER, "operator", &operator.name.name)?;
        let left = match built_in.left {
            Oid::NONE => "NONE".to_owned(),
            left => type_name(left),
        };
        let message = format!(
            "cannot drop operator {}({left},{}) because it is required by the database system",
            built_in.name,
            type_name(built_in.right)
        );
        Err(Error::new(state::DEPENDENT_OBJECTS_STILL_EXIST, message))
    }

    /// A user's operator, which the current user may change.
    fn own_operator_named(
        &mut self,
        operator: &OperatorName,
    ) -> Result<std::sync::Arc<OperatorDef>> {
        let oid = self.find_operator(operator)?;
        let Some(def) = self.catalog().operator(oid).cloned() else {
            self.must_own(builtin::SUPERUSER, "operator", &operator.name.name)?;
            return Err(Error::unsupported("changing a built-in operator"));
        };
        self.must_own(def.owner, "operator", &def.name)?;
        Ok(def)
    }

    /// The operator that a name with operands' types means.
    fn find_operator(&mut self, operator: &OperatorName) -> Result<Oid> {
        if let Some(schema) = operator.name.schema.as_deref() {
            self.schema(schema)?;
        }
        let mut types = Vec::with_capacity(2);
        for ty in [&operator.left, &operator.right] {
            types.push(match ty {
                Some(ty) => self.type_of(ty).map_err(no_position)?.oid,
                None => Oid::NONE,
            });
        }
        if operator.right.is_none() {
            let message = "postfix operators are not supported";
            return Err(Error::new(state::SYNTAX_ERROR, message));
        }
        self.operator_named(&operator.name, Some(types[0]), types[1])
    }

    /// The operator of just these operands. 42883 where there is none.
    pub(in crate::binder) fn operator_named(
        &mut self,
        operator: &ast::Operator,
        left: Option<Oid>,
        right: Oid,
    ) -> Result<Oid> {
        let left = left.unwrap_or(Oid::NONE);
        if let Some(found) = self.operator_in_path(operator, left, right)? {
            return Ok(found);
        }
        let written = written(operator);
        let operands = match left {
            Oid::NONE => format!("{written} {}", type_name(right)),
            left => format!("{} {written} {}", type_name(left), type_name(right)),
        };
        let message = format!("operator does not exist: {operands}");
        Err(Error::new(state::UNDEFINED_FUNCTION, message))
    }

    fn operator_in_path(
        &mut self,
        operator: &ast::Operator,
        left: Oid,
        right: Oid,
    ) -> Result<Option<Oid>> {
        let schemas = match operator.schema.as_deref() {
            Some(schema) => vec![self.schema(schema)?],
            None => self.search_path.clone(),
        };
        let prefix = Some(left).filter(|left| *left != Oid::NONE);
        for schema in schemas {
            if schema == builtin::PG_CATALOG {
                let mut known = operators_named(&operator.name).iter();
                if let Some(found) = known.find(|o| o.left == left && o.right == right) {
                    return Ok(Some(found.oid));
                }
            }
            let own = self.catalog().operators_in(schema, &operator.name);
            let mut own = own.into_iter();
            if let Some(def) = own.find(|o| o.left == prefix && o.right == right) {
                return Ok(Some(def.oid));
            }
        }
        Ok(None)
    }
}

fn written(operator: &ast::Operator) -> String {
    match &operator.schema {
        Some(schema) => format!("{schema}.{}", operator.name),
        None => operator.name.clone(),
    }
}

/// 42P13: what only operators of two operands, or only those that give a truth value, can have.
fn check_properties(
    operands: Operands,
    commutator: bool,
    negator: bool,
    (restrict, join): (Option<Oid>, Option<Oid>),
    (merges, hashes): (bool, bool),
) -> Result<()> {
    let mut wrong = None;
    if operands.left.is_none() {
        wrong = [
            (commutator, "only binary operators can have commutators"),
            (
                join.is_some(),
                "only binary operators can have join selectivity",
            ),
            (merges, "only binary operators can merge join"),
            (hashes, "only binary operators can hash"),
        ]
        .into_iter()
        .find(|(has, _)| *has);
    }
    if operands.ret != oid::BOOL {
        wrong = wrong.or([
            (negator, "only boolean operators can have negators"),
            (
                restrict.is_some(),
                "only boolean operators can have restriction selectivity",
            ),
            (
                join.is_some(),
                "only boolean operators can have join selectivity",
            ),
            (merges, "only boolean operators can merge join"),
            (hashes, "only boolean operators can hash"),
        ]
        .into_iter()
        .find(|(has, _)| *has));
    }
    match wrong {
        Some((_, message)) => Err(invalid(message)),
        None => Ok(()),
    }
}
