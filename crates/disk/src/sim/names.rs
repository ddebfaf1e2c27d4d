//! A simulated directory tree, and which of its names are durable.

use super::Rng;
use super::content::Content;
use crate::{join, parent};
use std::collections::BTreeMap;
use std::sync::Arc;
use throng_sync::lock::Mutex;

#[derive(Clone)]
pub(super) enum Node {
    Directory,
    File(Arc<Mutex<Content>>),
}

/// A change of names, all in one directory.
pub(super) enum NameOp {
    Link(String, Node),
    Unlink(String),
    Rename(String, String),
}

type Tree = BTreeMap<String, Node>;

#[derive(Default)]
pub(super) struct Names {
    /// What is there.
    now: Tree,
    /// What is there for certain after a crash …
    durable: Tree,
    /// … and what was done since, oldest first.
    pending: Vec<NameOp>,
}

impl NameOp {
    fn directory(&self) -> &str {
        match self {
            NameOp::Link(path, _) | NameOp::Unlink(path) | NameOp::Rename(_, path) => parent(path),
        }
    }

    fn apply(&self, tree: &mut Tree) {
        match self {
            NameOp::Link(path, node) => {
                tree.insert(path.clone(), node.clone());
            }
            NameOp::Unlink(path) => {
                tree.remove(path);
            }
            NameOp::Rename(from, to) => {
                if let Some(node) = tree.remove(from) {
                    tree.insert(to.clone(), node);
                }
            }
        }
    }
}

impl Names {
    pub(super) fn get(&self, path: &str) -> Option<&Node> {
        self.now.get(path)
    }

    pub(super) fn is_directory(&self, path: &str) -> bool {
        is_directory(&self.now, path)
    }

    pub(super) fn children(&self, dir: &str) -> Vec<String> {
        let prefix = join(dir, "");
        let below = |path: &String| {
            path.strip_prefix(&prefix)
                .filter(|name| !name.contains('/'))
                .map(str::to_string)
        };
        self.now.keys().filter_map(below).collect()
    }

    pub(super) fn files(&self) -> impl Iterator<Item = &Mutex<Content>> {
        self.now.values().filter_map(|node| match node {
            Node::File(file) => Some(&**file),
            Node::Directory => None,
        })
    }

    pub(super) fn change(&mut self, op: NameOp) {
        op.apply(&mut self.now);
        self.pending.push(op);
    }

    pub(super) fn sync(&mut self, dir: &str) {
        for op in self.pending.extract_if(.., |op| op.directory() == dir) {
            op.apply(&mut self.durable);
        }
    }

    /// What a crash now might leave: of each directory's pending changes the first few.
    pub(super) fn crash(&self, rng: &mut Rng) -> Names {
        let mut tree = self.durable.clone();
        let mut left: BTreeMap<&str, u64> = BTreeMap::new();
        for op in &self.pending {
            *left.entry(op.directory()).or_default() += 1;
        }
        for count in left.values_mut() {
            *count = rng.below(*count + 1);
        }
        for op in &self.pending {
            let left = left.get_mut(op.directory()).expect("counted above");
            if *left > 0 {
                *left -= 1;
                op.apply(&mut tree);
            }
        }
        // A file whose directory is gone cannot be reached.
        let mut after = Tree::new();
        for (path, node) in &tree {
            if is_directory(&tree, parent(path)) {
                after.insert(path.clone(), crash_node(node, rng));
            }
        }
        Names {
            now: after.clone(),
            durable: after,
            pending: Vec::new(),
        }
    }
}

fn is_directory(tree: &Tree, path: &str) -> bool {
    path.is_empty() || matches!(tree.get(path), Some(Node::Directory))
}

fn crash_node(node: &Node, rng: &mut Rng) -> Node {
    match node {
        Node::Directory => Node::Directory,
        Node::File(file) => Node::File(Arc::new(Mutex::new(file.lock().crash(rng)))),
    }
}
