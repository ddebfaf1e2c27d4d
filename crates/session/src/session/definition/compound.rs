//! Statements that are made of others: those about a prepared one, and CREATE SCHEMA with what is
//! made in it.

use std::time::Instant;

use std::rc::Rc;

use throng_bind::command::{BoundStatement, Command, Ddl, ExplainOptions};
use throng_syntax::parse::ast::{self, Statement};
use throng_types::error::state;
use throng_types::{Error, Result};

use crate::session::Session;
use throng_exec::client::Client;

impl Session {
    /// EXPLAIN EXECUTE: the plan that EXECUTE would run.
    pub(in crate::session) async fn explain_execute(
        &mut self,
        options: &ExplainOptions,
        execute: Command,
        client: &mut dyn Client,
    ) -> Result<()> {
        let Command::Execute { name, args } = execute else {
            return Err(Error::internal("EXPLAIN of another command"));
        };
        let values = self.values_of(args).await?;
        let prepared = self.find_prepared(&name)?;
        if prepared.known().plan.is_none() {
            let message = format!("prepared statement \"{name}\" has no plan");
            return Err(Error::unsupported(message));
        }
        let planning = Instant::now();
        let plan = self.plan_with(&prepared, &values).await?;
        let planning = planning.elapsed();
        let shape = self.explain_shape(options);
        client.row_description(&shape);
        *self.command_values.borrow_mut() = values;
        self.explain_plan(options, plan, planning, &shape, client)
            .await?;
        client.command_complete("EXPLAIN");
        Ok(())
    }

    /// CREATE TABLE AS EXECUTE.
    pub(in crate::session) async fn create_table_as_execute(
        &mut self,
        mut table: ast::CreateTable,
        names: Vec<String>,
        with_data: bool,
        execute: Command,
        client: &mut dyn Client,
    ) -> Result<()> {
        let Command::Execute { name, args } = execute else {
            return Err(Error::internal("CREATE TABLE AS another command"));
        };
        let values = self.values_of(args).await?;
        let prepared = self.find_prepared(&name)?;
        let known = prepared.known();
        let Some(Statement::Query(query)) = known.statement.as_deref() else {
            let message = "prepared statement is not a SELECT";
            return Err(Error::new(state::WRONG_OBJECT_TYPE, message));
        };
        table.query = Some(ast::CreateTableAs {
            names,
            query: (**query).clone(),
            with_data,
        });
        let create = Statement::CreateTable(Box::new(table));
        let bound = self.bind_command(&create, &known.sql, &known.params);
        let bound = Box::pin(bound).await?;
        let BoundStatement::Ddl(ddl) = bound.statement else {
            return Err(Error::internal("CREATE TABLE that is no definition"));
        };
        self.notices(bound.notices, client);
        *self.command_values.borrow_mut() = values;
        self.run_ddl(*ddl, client).await
    }

    /// CREATE SCHEMA with elements, which its owner makes and whose names are sought in it first.
    pub(in crate::session) async fn create_schema(
        &mut self,
        schema: Ddl,
        elements: &[Statement],
        sql: &str,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.must_be_writable(&schema.tag())?;
        let Ddl::CreateSchema { name, owner, .. } = &schema else {
            return Err(Error::internal("CREATE SCHEMA that makes something else"));
        };
        let (_, notices) = self.define(&schema).await?;
        self.notices(notices, client);
        let catalog = self.catalog();
        let owner = catalog.role(*owner).map(|role| role.as_ref().into());
        let role = owner.map(|owner| self.act_for(Rc::new(owner)));
        let first = self.schema_first.replace(name.clone());
        let made = self.make_elements(elements, sql, client).await;
        self.schema_first = first;
        if let Some((role, limits)) = role {
            self.act_again(role, limits);
        }
        made?;
        client.command_complete(&schema.tag());
        Ok(())
    }

    async fn make_elements(
        &mut self,
        elements: &[Statement],
        sql: &str,
        client: &mut dyn Client,
    ) -> Result<()> {
        for element in elements {
            let bound = Box::pin(self.bind_command(element, sql, &[])).await?;
            self.notices(bound.notices, client);
            let BoundStatement::Ddl(ddl) = bound.statement else {
                return Err(Error::unsupported("this element of CREATE SCHEMA"));
            };
            let (_, notices) = self.define(&ddl).await?;
            self.notices(notices, client);
        }
        Ok(())
    }
}
