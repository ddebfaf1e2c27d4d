//! Filling a new index with keys that were gathered.

use throng_buffer::retry;
use throng_exec::table::Index;
use throng_types::{Error, Result, Tid, Xid};

use super::keys::Keys;

/// Bytes of keys that are gathered for an inverted index before they go into it: of what its rows
/// have many the memory would not hold all.
const MOST: usize = 256 << 20;

/// An index that is being filled.
pub(super) struct Filling<'i> {
    index: &'i Index,
    xid: Xid,
    keys: Keys,
    /// The tree has been built, of the keys that were gathered first.
    is_built: bool,
}

impl<'i> Filling<'i> {
    pub fn new(index: &'i Index, xid: Xid) -> Filling<'i> {
        Filling {
            index,
            xid,
            keys: Keys::default(),
            is_built: false,
        }
    }

    pub fn push(&mut self, key: &[u8], tid: Tid, any_null: bool) {
        self.keys.push(key, tid, any_null);
    }

    /// Puts what was gathered into the index, if it is much.
    pub async fn flush(&mut self) -> Result<()> {
        if self.index.inverted.is_some() && self.keys.size() > MOST {
            self.sort().await?;
            self.fill().await?;
        }
        Ok(())
    }

    /// Puts the rest in order.
    pub async fn sort(&mut self) -> Result<()> {
        // Sorting many keys takes long: on a thread that serves nobody else.
        let keys = std::mem::take(&mut self.keys);
        self.keys = tokio::task::spawn_blocking(move || keys.sorted())
            .await
            .map_err(|e| Error::internal(format!("sorting keys: {e}")))?;
        Ok(())
    }

    /// The row that has the key of one before it.
    pub fn first_duplicate(&self, nulls_too: bool) -> Option<Tid> {
        self.keys.first_duplicate(nulls_too)
    }

    /// The rows whose keys are gathered.
    pub fn rows(&self) -> Vec<Tid> {
        self.keys.iter().map(|(_, root)| root).collect()
    }

    /// Puts what was sorted into the index.
    pub async fn fill(&mut self) -> Result<()> {
        let keys = std::mem::take(&mut self.keys);
        match std::mem::replace(&mut self.is_built, true) {
            false => self.build(&keys).await,
            true => self.add(&keys).await,
        }
    }

    async fn build(&self, keys: &Keys) -> Result<()> {
        let mut builder = self.index.tree.builder(self.xid);
        if let Some(percent) = self.index.def.fill_factor() {
            builder = builder.filling(percent);
        }
        for (i, (key, tid)) in keys.iter().enumerate() {
            retry(|| builder.push(key, tid)).await?;
            if i % 1000 == 0 {
                throng_exec::turns::next_turn().await;
            }
        }
        retry(|| builder.finish()).await?;
        Ok(())
    }

    /// Adds to a tree that has been built.
    async fn add(&self, keys: &Keys) -> Result<()> {
        use throng_access::btree::Run;
        /// Entries offered at once.
        const RUN: usize = 500;
        let all: Vec<(&[u8], Tid)> = keys.iter().collect();
        let mut left = &all[..];
        while !left.is_empty() {
            let next = &left[..left.len().min(RUN)];
            match retry(|| self.index.tree.insert_run(next, self.xid, None)).await? {
                Run::Added(count) => left = &left[count..],
                Run::Duplicate(_) | Run::Busy(_) => {
                    return Err(Error::internal(
                        "an entry that need not be unique is refused",
                    ));
                }
            }
            throng_exec::turns::next_turn().await;
        }
        Ok(())
    }
}
