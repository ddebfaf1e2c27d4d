//! REINDEX, when it is more than one definition: table after table, each in a transaction of its
//! own.

use throng_bind::command::Ddl;
use throng_types::{Oid, Result};

use crate::session::Session;
use throng_exec::client::Client;

impl Session {
    /// `alone`: what it is called, where it cannot be run in a transaction block.
    pub(in crate::session) async fn reindex(
        &mut self,
        indexes: Vec<Oid>,
        concurrently: bool,
        alone: Option<&'static str>,
        client: &mut dyn Client,
    ) -> Result<()> {
        self.must_be_writable("REINDEX")?;
        let Some(what) = alone else {
            return self.make_anew(indexes, concurrently, client).await;
        };
        self.must_be_outside_block(what)?;
        let catalog = self.catalog();
        let mut tables: Vec<(Oid, Vec<Oid>)> = Vec::new();
        for oid in indexes {
            let Some(index) = catalog.index(oid) else {
                continue;
            };
            match tables.last_mut() {
                Some((table, of)) if *table == index.table => of.push(oid),
                _ => tables.push((index.table, vec![oid])),
            }
        }
        for (_, indexes) in tables {
            self.begin_if_idle();
            self.make_anew(indexes, concurrently, client).await?;
            self.commit().await?;
        }
        self.begin_if_idle();
        Ok(())
    }

    async fn make_anew(
        &mut self,
        indexes: Vec<Oid>,
        concurrently: bool,
        client: &mut dyn Client,
    ) -> Result<()> {
        let ddl = Ddl::Reindex {
            indexes,
            concurrently,
        };
        let (_, notices) = self.define(&ddl).await?;
        self.notices(notices, client);
        Ok(())
    }
}
