//! Relation files that no server has open: their pages, and what is wrong with them.

use std::fmt;

use throng_buffer::page_is_intact;
use throng_disk::RelFiles;
use throng_types::page::PAGE_SIZE;
use throng_types::{BlockNo, FileId, PageId};

/// Something that is not as it must be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// `None` when it is about the file as a whole.
    pub block: Option<BlockNo>,
    pub what: String,
}

impl Fault {
    pub fn at(block: BlockNo, what: impl fmt::Display) -> Fault {
        Fault {
            block: Some(block),
            what: what.to_string(),
        }
    }
    pub fn of_file(what: impl fmt::Display) -> Fault {
        Fault {
            block: None,
            what: what.to_string(),
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.block {
            Some(block) => write!(f, "block {block}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// The pages of one file.
pub struct Pages<'a> {
    files: &'a RelFiles,
    file: FileId,
    blocks: BlockNo,
}

impl<'a> Pages<'a> {
    pub fn of(files: &'a RelFiles, file: FileId) -> Result<Pages<'a>, Fault> {
        let blocks = files.blocks(file).map_err(Fault::of_file)?;
        Ok(Pages {
            files,
            file,
            blocks,
        })
    }

    pub fn file(&self) -> FileId {
        self.file
    }
    pub fn blocks(&self) -> BlockNo {
        self.blocks
    }
    /// One page, its checksum verified.
    pub fn read(&self, block: BlockNo) -> Result<Box<[u8; PAGE_SIZE]>, Fault> {
        let id = PageId::new(self.file, block);
        let mut page = Box::new([0; PAGE_SIZE]);
        self.files
            .read_page(id, &mut page)
            .map_err(|e| Fault::at(block, e))?;
        if !page_is_intact(id, &page) {
            return Err(Fault::at(block, "checksum does not match"));
        }
        Ok(page)
    }
}
