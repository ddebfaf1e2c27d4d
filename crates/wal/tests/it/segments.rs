//! Segment files: their borders, their reuse, and their running out.

use super::*;
use throng_disk::{CheckedDisk, RealDisk};
use throng_types::error::state;

fn segment_files(disk: &SimDisk) -> usize {
    disk.list("wal").unwrap().len()
}

#[test]
fn records_of_all_sizes_cross_ring_and_segments() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    std::thread::scope(|s| {
        for thread in 0..4u64 {
            let wal = &wal;
            s.spawn(move || {
                let mut record = RecordBuilder::new();
                for i in 0..200 {
                    build(&mut record, thread * 1000 + i);
                    wal.insert(&mut record);
                }
            });
        }
    });
    wal.shutdown().unwrap();
    let (mut xids, end) = read_all(&disk, Wal::FIRST);
    assert_eq!(end, wal.flushed());
    assert!(end.0 > Wal::FIRST.0 + 8 * SEGMENT);
    xids.sort_unstable();
    let expected: Vec<u64> = (0..4)
        .flat_map(|t| (0..200).map(move |i| t * 1000 + i))
        .collect();
    assert_eq!(xids, expected);
}

#[test]
fn a_log_may_end_anywhere_and_go_on_there() {
    let disk = SimDisk::new();
    let mut start = Wal::FIRST;
    let mut expected = Vec::new();
    for xid in 1..120 {
        let wal = open(&disk, start);
        let end = insert(&wal, xid);
        wal.flush_blocking(end).unwrap();
        drop(wal);
        expected.push(xid);
        start = end;
    }
    assert_eq!(read_all(&disk, Wal::FIRST), (expected, start));
}

#[test]
fn old_segments_are_reused_and_their_bytes_are_not_records() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let mut from = Wal::FIRST;
    let mut inserted = Vec::new();
    let mut most = 0;
    for xid in 1..3000 {
        let lsn = insert(&wal, xid);
        inserted.push((xid, lsn));
        if xid.is_multiple_of(100) {
            wal.flush_blocking(lsn).unwrap();
            from = lsn;
            wal.recycle_before(from).unwrap();
            inserted.clear();
            most = most.max(segment_files(&disk));
        }
    }
    wal.shutdown().unwrap();
    assert!(wal.flushed().0 > Wal::FIRST.0 + 30 * SEGMENT);
    // In use, ahead, and as many spare as were used in between.
    assert!(most < 30, "{most} files");
    let expected: Vec<u64> = inserted.iter().map(|(xid, _)| *xid).collect();
    assert_eq!(read_all(&disk, from), (expected, wal.flushed()));
    // A crash right now loses none of it.
    assert_eq!(read_all(&disk.crash_image(1), from).1, wal.flushed());
}

#[test]
fn a_full_disk_is_told_early_and_gets_well() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    // A file that is being made is one already: the third is to be whole.
    while segment_files(&disk) < 3 || disk.used() < 3 * SEGMENT {
        std::thread::yield_now();
    }
    disk.set_capacity(disk.used());
    // Into the second segment: one more would be made ahead now, and cannot.
    let mut xid = 1;
    let mut end = wal.inserted();
    while end.0 < Wal::FIRST.0 + SEGMENT + 10 {
        end = insert(&wal, xid);
        xid += 1;
    }
    wal.flush_blocking(end).unwrap();
    let error = loop {
        match wal.check_space() {
            Err(error) => break error,
            Ok(()) => std::thread::yield_now(),
        }
    };
    assert_eq!(error.code(), state::DISK_FULL);
    // What is under way still has room to commit.
    end = insert(&wal, xid);
    wal.flush_blocking(end).unwrap();
    // A checkpoint frees the first segment, and that is enough.
    wal.recycle_before(end).unwrap();
    while wal.check_space().is_err() || segment_files(&disk) < 3 {
        std::thread::yield_now();
    }
    assert!(wal.failed().is_none());
}

#[test]
fn a_log_that_cannot_grow_fails_rather_than_lies() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    disk.set_capacity(disk.used());
    let mut last = Ok(());
    for xid in 1..400 {
        last = wal.flush_blocking(insert(&wal, xid));
        if last.is_err() {
            break;
        }
    }
    assert_eq!(last.unwrap_err().code(), state::DISK_FULL);
    assert_eq!(read_all(&disk, Wal::FIRST).1, wal.flushed());
}

#[test]
fn segments_of_another_size_are_refused_untouched() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let end = insert(&wal, 1);
    wal.shutdown().unwrap();
    drop(wal);
    for size in [SEGMENT / 2, SEGMENT * 2, 3 * 4096] {
        let config = WalConfig {
            segment_size: size,
            ..config()
        };
        assert!(
            Wal::open(Arc::new(disk.clone()), config, Wal::FIRST).is_err(),
            "{size}"
        );
    }
    assert_eq!(read_all(&disk, Wal::FIRST), (vec![1], end));
}

#[test]
fn it_works_on_a_real_disk() {
    let dir = tempfile::tempdir().unwrap();
    let disk: Arc<dyn Disk> = Arc::new(CheckedDisk::new(RealDisk::new(dir.path()).unwrap()));
    let mut start = Wal::FIRST;
    let mut expected = Vec::new();
    for generation in 0..3u64 {
        let wal = Wal::open(disk.clone(), config(), start).unwrap();
        for i in 0..50 {
            let xid = generation * 1000 + i;
            wal.flush_blocking(insert(&wal, xid)).unwrap();
            expected.push(xid);
        }
        start = wal.flushed();
        wal.shutdown().unwrap();
    }
    let mut reader = Reader::new(disk, SEGMENT, &Arc::default(), Wal::FIRST);
    let mut xids = Vec::new();
    while let Some(entry) = reader.next().unwrap() {
        let Record::Commit { xid, .. } = entry.record else {
            panic!("only commits were inserted")
        };
        xids.push(xid.0);
    }
    assert_eq!((xids, reader.end()), (expected, start));
}

/// A log of commits that were flushed one by one, where each begins, and where the last ends.
fn flushed_one_by_one(disk: &SimDisk) -> Vec<Lsn> {
    let wal = open(disk, Wal::FIRST);
    let mut ends = vec![Wal::FIRST];
    for xid in 1..=20 {
        let mut record = RecordBuilder::new();
        record.commit(Xid(xid), &subxids(xid), &[], wal.flushed(), 0);
        let end = wal.insert(&mut record);
        wal.flush_blocking(end).unwrap();
        ends.push(end);
    }
    wal.shutdown().unwrap();
    ends
}

#[test]
fn a_damaged_log_is_told_from_a_torn_one() {
    let disk = SimDisk::new();
    let places = flushed_one_by_one(&disk);
    for (n, &at) in places[..20].iter().enumerate() {
        let image = disk.crash_image(n as u64);
        let path = format!("wal/{:016X}", at.0 / SEGMENT * SEGMENT);
        let (file, offset) = (image.open(&path, false).unwrap(), at.0 % SEGMENT + 16);
        let mut byte = [0];
        file.read_at(&mut byte, offset).unwrap();
        file.write_at(&[byte[0] ^ 1], offset).unwrap();
        let (xids, end) = read_all(&image, Wal::FIRST);
        assert_eq!((xids.len(), end), (n, at));
        let image: Arc<dyn Disk> = Arc::new(image);
        let verified = Wal::verify_end(&image, &config(), end);
        // Of the last one nobody says that it was there.
        match n < 19 {
            true => assert!(verified.unwrap_err().message().contains(&path), "{n}"),
            false => verified.unwrap(),
        }
    }
    let whole: Arc<dyn Disk> = Arc::new(disk);
    Wal::verify_end(&whole, &config(), places[20]).unwrap();
}

#[test]
fn a_segment_that_is_gone_is_missed() {
    let disk = SimDisk::new();
    flushed_one_by_one(&disk);
    let verify = |disk: &SimDisk| Wal::verify(disk, &config(), Wal::FIRST, true);
    verify(&disk).unwrap();
    for name in disk.list("wal").unwrap() {
        let path = format!("wal/{name}");
        let gone = disk.crash_image(1);
        gone.remove(&path).unwrap();
        assert!(
            verify(&gone).unwrap_err().message().contains(&path),
            "{path}"
        );
        let cut = disk.crash_image(1);
        cut.open(&path, false).unwrap().set_len(10).unwrap();
        assert!(
            verify(&cut).unwrap_err().message().contains(&path),
            "{path}"
        );
    }
    let other = WalConfig {
        identifier: 9,
        ..config()
    };
    let refusal = Wal::verify(&disk, &other, Wal::FIRST, true).unwrap_err();
    assert!(refusal.message().contains("data directory"));
}

#[test]
fn a_segment_is_filled_beside_inserters() {
    for insert in throng_wal::InsertForm::ALL {
        let disk = SimDisk::new();
        let config = WalConfig { insert, ..config() };
        let wal = Wal::open(Arc::new(disk.clone()), config, Wal::FIRST).unwrap();
        let ends: Vec<Lsn> = std::thread::scope(|s| {
            for thread in 0..3u64 {
                let wal = &wal;
                s.spawn(move || (0..200).for_each(|i| _ = insert_one(wal, thread * 1000 + i)));
            }
            let wal = &wal;
            let switch = move |_| {
                std::thread::sleep(std::time::Duration::from_micros(300));
                wal.switch_segment()
            };
            s.spawn(move || (0..20).map(switch).collect())
                .join()
                .unwrap()
        });
        wal.switch_segment();
        assert!(wal.inserted().0.is_multiple_of(SEGMENT));
        assert_eq!(
            wal.switch_segment(),
            wal.inserted(),
            "an empty one is left alone"
        );
        assert!(ends.windows(2).all(|pair| pair[0] <= pair[1]));
        wal.shutdown().unwrap();
        let mut reader = reader(&disk, Wal::FIRST);
        let (mut commits, mut fillers) = (0, 0);
        while let Some(entry) = reader.next().unwrap() {
            match entry.record {
                Record::Filler => {
                    fillers += 1;
                    // One that had no room goes on in the next segment.
                    assert!(entry.end.0 % SEGMENT < 32, "{insert:?}: {}", entry.end);
                }
                _ => commits += 1,
            }
        }
        assert_eq!((commits, reader.end()), (600, wal.flushed()));
        assert!(fillers > 0);
    }
}

fn insert_one(wal: &Wal, xid: u64) -> Lsn {
    let mut record = RecordBuilder::new();
    record.commit(Xid(xid), &[], &[], Lsn::ZERO, 0);
    wal.insert(&mut record)
}

#[test]
fn what_is_held_is_not_recycled() {
    let disk = SimDisk::new();
    let wal = open(&disk, Wal::FIRST);
    let hold = wal.hold(Wal::FIRST);
    for xid in 1..200 {
        insert(&wal, xid);
    }
    wal.flush_blocking(wal.inserted()).unwrap();
    wal.recycle_before(wal.inserted()).unwrap();
    assert_eq!(wal.oldest(), Wal::FIRST);
    assert_eq!(read_all(&disk, Wal::FIRST).0.len(), 199);
    hold.advance(Lsn(Wal::FIRST.0 + 2 * SEGMENT + 5));
    wal.recycle_before(wal.inserted()).unwrap();
    assert_eq!(wal.oldest(), Lsn(Wal::FIRST.0 + 2 * SEGMENT));
    drop(hold);
    wal.recycle_before(wal.inserted()).unwrap();
    assert_eq!(wal.oldest().0, wal.inserted().0 / SEGMENT * SEGMENT);
}
