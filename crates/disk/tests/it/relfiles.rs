//! Relation files: lengths, handles, what a checkpoint makes durable.

use proptest::prelude::*;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::sync::Arc;
use throng_disk::{CheckedDisk, Fault, FaultOp, RealDisk, RelFiles, SimDisk};
use throng_types::page::PAGE_SIZE;
use throng_types::{FileId, PageId};

type Page = [u8; PAGE_SIZE];

fn simulated(max_open: usize) -> (SimDisk, RelFiles) {
    let sim = SimDisk::new();
    let disk = Arc::new(CheckedDisk::new(sim.clone()));
    (sim, RelFiles::with_max_open(disk, max_open).unwrap())
}

fn read(files: &RelFiles, file: u32, block: u32) -> std::io::Result<u8> {
    let mut page: Page = [0; PAGE_SIZE];
    files.read_page(PageId::new(FileId(file), block), &mut page)?;
    assert!(
        page.iter().all(|&byte| byte == page[0]),
        "a page of one write"
    );
    Ok(page[0])
}

fn write(files: &RelFiles, file: u32, block: u32, byte: u8) -> std::io::Result<()> {
    files.write_pages(PageId::new(FileId(file), block), &[[byte; PAGE_SIZE]])
}

#[test]
fn the_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(CheckedDisk::new(RealDisk::new(dir.path()).unwrap()));
    let files = RelFiles::new(disk.clone()).unwrap();
    files.create(FileId(7)).unwrap();
    // Few blocks are written, many are reserved.
    assert_eq!(files.extend(FileId(7), 2).unwrap(), 0);
    assert_eq!(files.extend(FileId(7), 100).unwrap(), 2);
    write(&files, 7, 101, 5).unwrap();
    assert_eq!(
        (read(&files, 7, 101).unwrap(), read(&files, 7, 100).unwrap()),
        (5, 0)
    );
    assert_eq!(files.sync_all_dirty().unwrap(), 1);
    assert_eq!(files.sync_all_dirty().unwrap(), 0);
    let path = dir.path().join("base/7");
    assert_eq!(
        std::fs::metadata(&path).unwrap().len(),
        102 * PAGE_SIZE as u64
    );
    files.truncate(FileId(7), 1).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), PAGE_SIZE as u64);

    // A new start finds it, less a block that is not whole.
    std::fs::write(dir.path().join("base/8"), vec![0; PAGE_SIZE + 100]).unwrap();
    std::fs::write(dir.path().join("base/not-ours"), b"").unwrap();
    let files = RelFiles::new(disk).unwrap();
    assert_eq!(files.list().unwrap(), [FileId(7), FileId(8)]);
    assert_eq!(files.blocks(FileId(7)).unwrap(), 1);
    assert_eq!(files.extend(FileId(8), 1).unwrap(), 1);
    assert_eq!(read(&files, 8, 1).unwrap(), 0);
    files.remove(FileId(7)).unwrap();
    files.remove(FileId(7)).unwrap();
    assert!(!path.exists());
}

#[test]
fn errors_say_which_file_and_block() {
    let (sim, files) = simulated(10);
    assert!(!files.exists(FileId(1)).unwrap());
    let text = |result: std::io::Result<_>| match result {
        Ok(()) => "no error".to_string(),
        Err(e) => e.to_string(),
    };
    assert_eq!(
        text(read(&files, 1, 0).map(drop)),
        "could not open file \"base/1\": No such file or directory"
    );
    files.create(FileId(1)).unwrap();
    assert_eq!(
        text(read(&files, 1, 3).map(drop)),
        "could not read block 3 in file \"base/1\": read only 0 of 8192 bytes"
    );
    assert_eq!(
        text(write(&files, 1, 0, 1)),
        "could not write block 0 in file \"base/1\": it has 0 blocks"
    );
    assert_eq!(
        text(files.ensure(FileId(1), u32::MAX)),
        "cannot extend file \"base/1\" beyond 4294967294 blocks"
    );
    sim.set_capacity(3 * PAGE_SIZE as u64);
    for n in [4, 40] {
        let error = files.extend(FileId(1), n).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        assert_eq!(
            error.to_string(),
            "could not extend file \"base/1\": No space left on device"
        );
        assert_eq!(files.blocks(FileId(1)).unwrap(), 0);
    }
    assert_eq!(sim.used(), 0, "what a failed extension got is given back");
    assert_eq!(files.extend(FileId(1), 3).unwrap(), 0);
}

#[test]
fn a_large_file_grows_ahead_and_what_is_not_used_is_given_back() {
    let (sim, files) = simulated(10);
    let (id, page) = (FileId(1), PAGE_SIZE as u64);
    files.create(id).unwrap();
    let grow = |to: u32| {
        for at in files.blocks(id).unwrap()..to {
            assert_eq!(files.extend(id, 1).unwrap(), at);
        }
        sim.used() / page
    };
    assert_eq!(grow(127), 127, "a small one does not");
    assert_eq!(grow(128), 128 + 8);
    assert_eq!(grow(128 + 8), 128 + 8);
    assert_eq!(files.blocks(id).unwrap(), 136);
    assert_eq!(read(&files, 1, 135).unwrap(), 0);
    assert!(read(&files, 1, 137).is_err(), "not there to be read yet");
    assert!(write(&files, 1, 137, 1).is_err());

    assert!(grow(1000) > 1000);
    files.trim().unwrap();
    assert_eq!(sim.used() / page, 1000);
    assert_eq!(grow(1001), 1001 + 62);
    files.truncate(id, 999).unwrap();
    assert_eq!(sim.used() / page, 999);
    assert_eq!(grow(1000), 1000 + 62);

    // Where the disk has no room for what is made ahead, it may have some for what is needed.
    files.truncate(id, 1000).unwrap();
    files.trim().unwrap();
    sim.set_capacity(1003 * page);
    assert_eq!(grow(1003), 1003);
    let full = files.extend(id, 1).unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
    assert_eq!(files.blocks(id).unwrap(), 1003);
}

#[test]
fn a_file_kept_by_a_late_user_is_not_opened_again_after_its_removal() {
    let (_sim, files) = simulated(10);
    files.create(FileId(1)).unwrap();
    files.extend(FileId(1), 1).unwrap();
    let kept = files.file(FileId(1)).unwrap();
    files.remove(FileId(1)).unwrap();
    assert_eq!(read(&files, 1, 0).unwrap_err().kind(), ErrorKind::NotFound);
    files.create(FileId(1)).unwrap();
    assert_eq!(files.blocks(FileId(1)).unwrap(), 0);
    assert_eq!(kept.blocks(), 1);
    assert_eq!((kept.id(), kept.path()), (FileId(1), "base/1"));
}

#[test]
fn extenders_of_one_file_each_get_their_own_blocks() {
    let (_sim, files) = simulated(10);
    files.create(FileId(1)).unwrap();
    let mut firsts: Vec<u32> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    (0..50)
                        .map(|_| files.extend(FileId(1), 3).unwrap())
                        .collect::<Vec<_>>()
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    firsts.sort_unstable();
    assert!(
        firsts
            .iter()
            .enumerate()
            .all(|(i, &first)| first == 3 * i as u32)
    );
    assert_eq!(files.blocks(FileId(1)).unwrap(), 600);
}

#[test]
fn a_failed_sync_leaves_the_file_dirty_and_stops_all_writing() {
    let (sim, files) = simulated(10);
    for id in [1, 2] {
        files.create(FileId(id)).unwrap();
        files.extend(FileId(id), 1).unwrap();
    }
    files.sync_all_dirty().unwrap();
    write(&files, 1, 0, 1).unwrap();
    sim.inject(Fault::new(FaultOp::Sync, "base/1").times(1));
    let error = files.sync_all_dirty().unwrap_err();
    assert_eq!(
        error.to_string(),
        "could not fsync file \"base/1\": Input/output error"
    );
    assert_eq!(files.stats().dirty, 1);
    assert!(files.sync_all_dirty().is_err());
    assert!(write(&files, 2, 0, 1).is_err());
    assert!(files.extend(FileId(2), 1).is_err());
    assert_eq!(read(&files, 1, 0).unwrap(), 1);
}

#[test]
fn handles_are_bounded_and_closing_syncs() {
    let (sim, files) = simulated(3);
    for id in 0..20 {
        files.create(FileId(id)).unwrap();
        files.extend(FileId(id), 1).unwrap();
        write(&files, id, 0, id as u8 + 1).unwrap();
        assert!(files.stats().open <= 3);
    }
    assert_eq!(files.stats().files, 20);
    assert!(
        sim.syncs() >= 17,
        "a file is synced before its handle is closed: {}",
        sim.syncs()
    );
    assert!(files.stats().dirty <= 3);
    for id in 0..20 {
        assert_eq!(read(&files, id, 0).unwrap(), id as u8 + 1);
        assert!(files.stats().open <= 3);
    }
}

#[derive(Clone, Debug)]
enum Op {
    Create(u32),
    Remove(u32),
    Extend(u32, u32),
    Ensure(u32, u32),
    Truncate(u32, u32),
    Write(u32, u32, u8),
    SyncAll,
}

fn op() -> impl Strategy<Value = Op> {
    let file = 0..6u32;
    prop_oneof![
        2 => file.clone().prop_map(Op::Create),
        1 => file.clone().prop_map(Op::Remove),
        3 => (file.clone(), 0..12u32).prop_map(|(f, n)| Op::Extend(f, n)),
        1 => (file.clone(), 100..200u32).prop_map(|(f, n)| Op::Extend(f, n)),
        1 => (file.clone(), 0..12u32).prop_map(|(f, n)| Op::Ensure(f, n)),
        1 => (file.clone(), 0..12u32).prop_map(|(f, n)| Op::Truncate(f, n)),
        6 => (file, 0..12u32, 1..255u8).prop_map(|(f, b, x)| Op::Write(f, b, x)),
        1 => Just(Op::SyncAll),
    ]
}

/// What the files should hold: a byte for each block.
type Model = BTreeMap<u32, Vec<u8>>;

/// Applies `op` to both; they must agree on whether it can be done.
fn apply(files: &RelFiles, model: &mut Model, op: &Op) {
    let missing = |result: std::io::Result<()>| {
        assert_eq!(result.unwrap_err().kind(), ErrorKind::NotFound);
    };
    match *op {
        Op::Create(f) => {
            files.create(FileId(f)).unwrap();
            model.entry(f).or_default();
        }
        Op::Remove(f) => {
            files.remove(FileId(f)).unwrap();
            model.remove(&f);
        }
        Op::Extend(f, n) => match model.get_mut(&f) {
            None => missing(files.extend(FileId(f), n).map(drop)),
            Some(blocks) => {
                assert_eq!(files.extend(FileId(f), n).unwrap(), blocks.len() as u32);
                blocks.resize(blocks.len() + n as usize, 0);
            }
        },
        Op::Ensure(f, n) => match model.get_mut(&f) {
            None => missing(files.ensure(FileId(f), n)),
            Some(blocks) => {
                files.ensure(FileId(f), n).unwrap();
                blocks.resize(blocks.len().max(n as usize), 0);
            }
        },
        Op::Truncate(f, n) => match model.get_mut(&f) {
            None => missing(files.truncate(FileId(f), n)),
            Some(blocks) => {
                files.truncate(FileId(f), n).unwrap();
                blocks.truncate(n as usize);
            }
        },
        Op::Write(f, b, x) => match model.get_mut(&f) {
            None => missing(write(files, f, b, x)),
            Some(blocks) => match blocks.get_mut(b as usize) {
                None => assert_eq!(
                    write(files, f, b, x).unwrap_err().kind(),
                    ErrorKind::InvalidInput
                ),
                Some(block) => {
                    write(files, f, b, x).unwrap();
                    *block = x;
                }
            },
        },
        Op::SyncAll => {
            files.sync_all_dirty().unwrap();
        }
    }
}

fn agree(files: &RelFiles, model: &Model) {
    let ids: Vec<u32> = files.list().unwrap().iter().map(|id| id.0).collect();
    assert_eq!(ids, model.keys().copied().collect::<Vec<_>>());
    for (&f, blocks) in model {
        assert_eq!(files.blocks(FileId(f)).unwrap(), blocks.len() as u32);
        for (b, &byte) in blocks.iter().enumerate() {
            assert_eq!(read(files, f, b as u32).unwrap(), byte);
        }
        assert_eq!(
            read(files, f, blocks.len() as u32).unwrap_err().kind(),
            ErrorKind::UnexpectedEof
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Against a model, with two handles for six files; and what was synced last survives a crash,
    /// some of it longer by zeros, and a stop as it is.
    #[test]
    fn a_model_of_files(ops in prop::collection::vec(op(), 1..60), seed in any::<u64>()) {
        let (sim, files) = simulated(2);
        let mut model = Model::new();
        for op in &ops {
            apply(&files, &mut model, op);
        }
        agree(&files, &model);
        files.sync_all_dirty().unwrap();
        let crashed = RelFiles::new(Arc::new(sim.crash_image(seed))).unwrap();
        let mut longer = model.clone();
        for (&f, blocks) in &mut longer {
            let made = crashed.blocks(FileId(f)).unwrap() as usize;
            prop_assert!((blocks.len()..=blocks.len() + blocks.len() / 16).contains(&made));
            blocks.resize(made, 0);
        }
        agree(&crashed, &longer);

        files.trim().unwrap();
        files.sync_all_dirty().unwrap();
        agree(&files, &model);
        agree(&RelFiles::new(Arc::new(sim.crash_image(seed))).unwrap(), &model);
    }
}
