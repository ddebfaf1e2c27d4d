//! CREATE, ALTER and REFRESH MATERIALIZED VIEW.

use throng_types::Result;

use super::Parser;
use super::ast::*;
use crate::vocabulary::Persistence;

impl Parser<'_> {
    /// From MATERIALIZED on.
    pub(super) fn create_materialized_view(
        &mut self,
        persistence: Persistence,
    ) -> Result<Statement> {
        self.keywords(&["materialized", "view"])?;
        let if_not_exists = self.if_not_exists();
        let name = self.any_name()?;
        let names = match self.is_punct('(') {
            true => self.name_list()?,
            false => vec![],
        };
        self.heap_method()?;
        let options = self.with_options()?;
        self.tablespace()?;
        self.keyword("as")?;
        let query = self.query()?;
        let with_data = self.with_data();
        Ok(Statement::CreateTable(Box::new(CreateTable {
            name,
            if_not_exists,
            persistence,
            columns: vec![],
            likes: vec![],
            constraints: vec![],
            options,
            query: Some(CreateTableAs {
                names,
                query,
                with_data,
            }),
            materialized: true,
            inherits: vec![],
            partition_by: None,
            partition_of: None,
        })))
    }

    /// After REFRESH.
    pub(super) fn refresh(&mut self) -> Result<Statement> {
        self.keywords(&["materialized", "view"])?;
        let concurrently = self.word("concurrently");
        let name = self.any_name()?;
        let with_data = self.with_data();
        Ok(Statement::RefreshMaterialized(Refresh {
            name,
            concurrently,
            with_data,
        }))
    }

    /// From MATERIALIZED on.
    pub(super) fn alter_materialized_view(&mut self) -> Result<Statement> {
        self.keywords(&["materialized", "view"])?;
        let kind = ObjectKind::MaterializedView;
        if self.is("all") && self.is_at(1, "in") {
            return Ok(self.skip_unsupported("ALTER MATERIALIZED VIEW ALL"));
        }
        let if_exists = self.if_exists();
        let name = self.any_name()?;
        if self.is("rename") && !self.is_at(1, "to") {
            self.advance();
            self.word("column");
            let column = self.name()?;
            self.keyword("to")?;
            let to = self.name()?;
            return Ok(Statement::RenameColumn {
                kind,
                table: name,
                only: false,
                if_exists,
                column,
                to,
            });
        }
        if self.any_of(&["rename", "owner"]) || (self.is("set") && self.is_at(1, "schema")) {
            let change = self.object_change()?;
            return Ok(Statement::AlterObject {
                kind,
                name,
                if_exists,
                change,
            });
        }
        if self.words(&["depends", "on"]) {
            return Ok(self.skip_unsupported("DEPENDS ON EXTENSION"));
        }
        let actions = self.list(Self::alter_action)?;
        Ok(Statement::AlterTable {
            kind,
            name,
            only: false,
            if_exists,
            actions,
        })
    }
}
