//! Values made while a path is walked, kept until the walk ends.

use std::cell::{Cell, OnceCell};
use throng_types::Jsonb;
use throng_types::jsonb::JsonRef;

/// The first value of a list that only grows.
#[derive(Default)]
pub struct Arena {
    first: Slot,
}

type Slot = OnceCell<Box<Node>>;

struct Node {
    value: Jsonb,
    next: Slot,
}

/// Where the next value of an arena goes.
pub struct Tail<'a>(Cell<&'a Slot>);

impl Arena {
    /// Asked for once: values are added at one place.
    pub fn tail(&mut self) -> Tail<'_> {
        Tail(Cell::new(&self.first))
    }
}

impl<'a> Tail<'a> {
    pub fn keep(&self, value: Jsonb) -> JsonRef<'a> {
        let node = self.0.get().get_or_init(|| {
            Box::new(Node {
                value,
                next: Slot::new(),
            })
        });
        self.0.set(&node.next);
        node.value.root()
    }
}

impl Drop for Arena {
    /// One after the other: a long list dropped from its head would recurse.
    fn drop(&mut self) {
        let mut slot = self.first.take();
        while let Some(mut node) = slot {
            slot = node.next.take();
        }
    }
}
