//! A page's checksum: crc32c over the page id and the page with its checksum field zero.
//!
//! The id is part of it, so that a page that was written to the wrong place is found out.

use throng_types::page::{OFF_CHECKSUM, PAGE_SIZE};
use throng_types::{Error, Lsn, PageId};

/// What the checksum field of `page`, stored at `id`, should hold.
pub fn page_checksum(id: PageId, page: &[u8; PAGE_SIZE]) -> u32 {
    let mut digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32Iscsi);
    digest.update(&id.raw().to_le_bytes());
    digest.update(&page[..OFF_CHECKSUM]);
    digest.update(&[0; 4]);
    digest.update(&page[OFF_CHECKSUM + 4..]);
    digest.finalize() as u32
}

/// Whether `page`, read from where `id` is stored, is what was written there. A page of zeros is:
/// it was never written.
pub fn page_is_intact(id: PageId, page: &[u8; PAGE_SIZE]) -> bool {
    stored(page) == page_checksum(id, page) || page.iter().all(|&byte| byte == 0)
}

pub(crate) fn stamp(id: PageId, page: &mut [u8; PAGE_SIZE]) {
    let checksum = page_checksum(id, page);
    page[OFF_CHECKSUM..OFF_CHECKSUM + 4].copy_from_slice(&checksum.to_le_bytes());
}

#[cold]
pub(crate) fn damaged(id: PageId) -> Error {
    Error::corrupted(format!(
        "invalid page in block {} of relation base/{}",
        id.block(),
        id.file()
    ))
    .hint("Restore the file, or the data directory, from a backup.")
}

/// A page whose last change the log does not have: what it says may never have been acknowledged,
/// or the log has lost its end.
#[cold]
pub(crate) fn beyond_log(id: PageId, lsn: Lsn, end: Lsn) -> Error {
    Error::corrupted(format!(
        "block {} of relation base/{} was changed at {lsn}, but the log ends at {end}",
        id.block(),
        id.file()
    ))
    .hint("Part of the log is missing, or the file is not of this data directory.")
}

fn stored(page: &[u8; PAGE_SIZE]) -> u32 {
    let bytes = &page[OFF_CHECKSUM..OFF_CHECKSUM + 4];
    u32::from_le_bytes(bytes.try_into().expect("four bytes"))
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::*;
    use throng_types::FileId;

    #[test]
    fn every_flipped_bit_and_every_wrong_place_is_noticed() {
        let id = PageId::new(FileId(7), 9);
        let mut page = [0; PAGE_SIZE];
        assert!(page_is_intact(id, &page));
        for (i, byte) in page.iter_mut().enumerate() {
            *byte = i as u8;
        }
        stamp(id, &mut page);
        assert!(page_is_intact(id, &page));
        assert!(!page_is_intact(PageId::new(FileId(7), 8), &page));
        assert!(!page_is_intact(PageId::new(FileId(6), 9), &page));
        for bit in (0..PAGE_SIZE * 8)
            .step_by(if cfg!(miri) { 9_973 } else { 97 })
            .chain(
                (OFF_CHECKSUM * 8..OFF_CHECKSUM * 8 + 32).step_by(if cfg!(miri) { 11 } else { 1 }),
            )
        {
            page[bit / 8] ^= 1 << (bit % 8);
            assert!(!page_is_intact(id, &page), "bit {bit}");
            page[bit / 8] ^= 1 << (bit % 8);
        }
    }
}
