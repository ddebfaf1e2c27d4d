//! One node against an ordered map.

use std::collections::BTreeMap;

use proptest::prelude::*;
use throng_types::page::PAGE_SIZE;

use super::super::check::check_layout;
use super::super::edit::{self, Bytes, Keys, Limit, Room, Shape};
use super::super::node::*;
use super::super::tree::Entry;
use super::*;

#[derive(Clone, Debug)]
enum Op {
    Insert(Vec<u8>),
    /// Takes out every key whose number has this remainder.
    Remove(usize, usize),
    /// Keeps this share of the keys, in 256ths, and has this high key above them.
    Cut(usize, Vec<u8>),
    Rebuild,
}

/// Keys that share prefixes, differ in zeros and length, or are large.
fn key() -> impl Strategy<Value = Vec<u8>> {
    let byte = prop_oneof![Just(0u8), Just(1), Just(b'a'), Just(255), any::<u8>()];
    let short = prop::collection::vec(byte.clone(), 0..14);
    let shared = (0..3usize, prop::collection::vec(byte, 0..10))
        .prop_map(|(n, end)| [&b"common prefix"[..13 - n], &end].concat());
    let large = (any::<u8>(), 200..1200usize).prop_map(|(byte, len)| vec![byte; len]);
    prop_oneof![6 => short, 6 => shared, 1 => large]
}

fn ops() -> impl Strategy<Value = Vec<Op>> {
    let op = prop_oneof![
        30 => key().prop_map(Op::Insert),
        2 => (2..6usize, 0..6usize).prop_map(|(of, n)| Op::Remove(of, n % of)),
        1 => (0..=256usize, key()).prop_map(|(share, key)| Op::Cut(share, key)),
        1 => Just(Op::Rebuild),
    ];
    prop::collection::vec(op, 0..150)
}

fn empty(level: u16) -> (Box<Bytes>, BTreeMap<Vec<u8>, u32>) {
    let mut keys = Keys::default();
    if level > 0 {
        keys.push(&[], 7);
    }
    let shape = Shape {
        level,
        right: 3,
        high: None,
        spare_prefix: 0,
    };
    (edit::image(&keys, 0, keys.len(), shape), BTreeMap::new())
}

fn agrees(page: &Bytes, model: &BTreeMap<Vec<u8>, u32>, level: u16) {
    let node = Node::read(page);
    assert_eq!(check_layout(&node, page), Ok(()));
    let first = node.first_key();
    assert_eq!(node.count(), model.len() + first);
    for (i, (key, child)) in model.iter().enumerate() {
        let i = i + first;
        assert_eq!(&node.key(i), key);
        assert_eq!(node.key_len(i), key.len());
        assert!(node.is_at(i, key) && node.starts_with(i, key));
        assert!(!node.starts_with(i, &[key, &b"x"[..]].concat()));
        assert_eq!(node.lower_bound(key), i);
        if level > 0 {
            assert_eq!(node.child(i), *child);
            assert_eq!(node.child_covering(key), i);
            assert_eq!(node.child_below(Some(key)), i - 1);
        } else if key.len() >= TID {
            assert_eq!(tid_bytes(node.tid(i)), key[key.len() - TID..]);
        }
    }
}

fn probe(page: &Bytes, model: &BTreeMap<Vec<u8>, u32>, key: &[u8]) {
    let node = Node::read(page);
    let below = model.range(..key.to_vec()).count();
    let bound = below + node.first_key();
    assert_eq!(node.lower_bound(key), bound);
    for from in node.first_key()..=bound {
        assert_eq!(node.lower_bound_from(from, key), bound);
    }
    for (i, present) in model.keys().enumerate() {
        assert_eq!(
            node.starts_with(i + node.first_key(), key),
            present.starts_with(key)
        );
    }
}

fn run(ops: Vec<Op>, level: u16, limit: Limit) {
    let (mut page, mut model) = empty(level);
    let mut next_child = 100;
    for op in ops {
        match op {
            Op::Insert(key) => {
                probe(&page, &model, &key);
                if model.contains_key(&key) || (level > 0 && key.is_empty()) {
                    continue;
                }
                let node = Node::read(&*page);
                let at = node.lower_bound(&key);
                let child = (level > 0).then_some(next_child);
                let room = edit::room(&node, limit, at, &key);
                if room == Room::None {
                    assert!(
                        node.used() + key.len() + 64 > limit.0 / 2,
                        "half a page is free, and more"
                    );
                    continue;
                }
                edit::insert_as(&mut *page, room, at, &key, child);
                model.insert(key, child.unwrap_or(0));
                next_child += 1;
            }
            Op::Remove(of, remainder) => {
                let first = usize::from(level > 0);
                let slots: Vec<usize> = (first..model.len() + first)
                    .filter(|i| i % of == remainder)
                    .collect();
                edit::remove(&mut *page, &slots);
                let mut i = first;
                model.retain(|_, _| {
                    i += 1;
                    (i - 1) % of != remainder
                });
            }
            Op::Cut(share, high) if level == 0 => {
                let keep = model.len() * share / 256;
                if edit::cut(&mut *page, limit, keep, Some(&high), 9) {
                    let cut = model.keys().nth(keep).cloned();
                    cut.map(|cut| model.split_off(&cut));
                    let node = Node::read(&*page);
                    let mut out = Vec::new();
                    assert_eq!(node.high_into(&mut out), !high.is_empty());
                    assert_eq!((&out, node.right()), (&high, 9));
                }
            }
            Op::Cut(..) => {}
            Op::Rebuild => {
                let node = Node::read(&*page);
                let keys = Keys::of(&node);
                let mut high = Vec::new();
                let high = node.high_into(&mut high).then_some(&high[..]);
                let size = keys.size(0, keys.len(), level > 0, high.map_or(0, <[u8]>::len));
                let image = edit::image(
                    &keys,
                    0,
                    keys.len(),
                    Shape {
                        level,
                        right: node.right(),
                        high,
                        spare_prefix: 0,
                    },
                );
                edit::install(&mut *page, &image);
                let node = Node::read(&*page);
                assert_eq!((node.used(), node.garbage()), (size, 0));
            }
        }
        assert!(Node::read(&*page).used() <= limit.0);
        agrees(&page, &model, level);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, ..ProptestConfig::default() })]

    #[test]
    fn a_leaf_is_an_ordered_set(ops in ops()) {
        run(ops, 0, Limit::PAGE);
    }

    #[test]
    fn an_inner_node_is_an_ordered_map(ops in ops()) {
        run(ops, 1, Limit::PAGE);
    }

    #[test]
    fn small_limits_are_kept(ops in ops()) {
        run(ops.clone(), 0, Limit(600));
        run(ops, 1, Limit(600));
    }

    #[test]
    fn a_size_foretold_is_the_size_that_comes(keys in prop::collection::btree_set(key(), 1..40), inner in any::<bool>()) {
        let mut all = Keys::default();
        for key in &keys {
            if !all.is_empty() || !inner {
                let foretold = all.size_with(key, inner);
                all.push(key, 1);
                prop_assert_eq!(foretold, all.size(0, all.len(), inner, 0));
            } else {
                all.push(key, 1);
            }
        }
    }

    #[test]
    fn a_separator_separates(a in key(), b in key()) {
        prop_assume!(a != b);
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        let separator = separator(&low, &high);
        prop_assert!(&low[..] < separator && separator <= &high[..]);
        prop_assert!(low[..] >= separator[..separator.len() - 1], "nothing shorter does");
    }

    #[test]
    fn garbage_is_borne(
        bytes in prop::collection::vec(any::<u8>(), 64..400),
        kind in 2..4u8,
        header in prop::collection::vec(any::<u8>(), 48),
        sane in any::<bool>(),
        key in key(),
    ) {
        let mut page: Box<Bytes> = Box::new([0; PAGE_SIZE]);
        for (i, byte) in page.iter_mut().enumerate() {
            *byte = bytes[i % bytes.len()];
        }
        page[..48].copy_from_slice(&header);
        page[12] = kind;
        if sane {
            // Bounds that make sense, so that more than the header is looked at.
            page[14..16].copy_from_slice(&848u16.to_le_bytes());
            page[32..36].copy_from_slice(&[0, 31, 3, 0]);
        }
        let node = Node::read(&*page);
        let mut out = Vec::new();
        let bound = node.lower_bound(&key);
        let from = node.lower_bound_from(bound, &key);
        for i in [bound, from, node.child_covering(&key), node.child_below(Some(&key)), 0, 1018] {
            node.starts_with(i, &key);
            node.is_at(i, &key);
            node.key_into(i, &mut out);
            node.tid(i);
            node.child(i);
        }
        node.high_into(&mut out);
        node.compare_high(&key);
        node.high_starts_with(&key);
        let _ = check_layout(&node, &page);
    }
}

#[test]
fn three_of_the_largest_keys_fit() {
    let limit = Limit::PAGE;
    let largest = |byte: u8| Entry::new(&[byte; MAX_KEY], Tid::new(u32::from(byte), 1));
    let (high, mut page) = (largest(9), empty(0).0);
    assert!(edit::cut(&mut *page, limit, 0, Some(high.bytes()), 2));
    for (at, byte) in [(0, 1), (1, 3)] {
        let key = largest(byte);
        let room = edit::room(&Node::read(&*page), limit, at, key.bytes());
        assert_ne!(room, Room::None);
        edit::insert_as(&mut *page, room, at, key.bytes(), None);
    }
    let node = Node::read(&*page);
    assert_eq!(node.key(1), largest(3).bytes());
    assert_eq!(edit::room(&node, limit, 1, largest(2).bytes()), Room::None);
    // Nor does the last byte of a node's page go unused for lack of care: children too.
    let (mut page, _) = empty(1);
    for (at, byte) in [(1, 1), (2, 3)] {
        let key = largest(byte);
        let room = edit::room(&Node::read(&*page), limit, at, key.bytes());
        edit::insert_as(&mut *page, room, at, key.bytes(), Some(5));
    }
    assert_eq!(Node::read(&*page).child(2), 5);
}

#[test]
fn the_root_of_counters_compares_heads_only() {
    let mut keys = Keys::default();
    keys.push(&[], 1);
    for n in 1..300u64 {
        keys.push(
            &[&[1][..], &(n * 70_000).to_be_bytes()[..]].concat(),
            n as u32,
        );
    }
    let shape = Shape {
        level: 1,
        right: 0,
        high: None,
        spare_prefix: 0,
    };
    let page = edit::image(&keys, 0, keys.len(), shape);
    let node = Node::read(&*page);
    let heads: BTreeSet<u32> = (1..node.count()).map(|i| node.slot(i).head).collect();
    assert_eq!(
        heads.len(),
        node.count() - 1,
        "the prefix makes all heads different"
    );
}
