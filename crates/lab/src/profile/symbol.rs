//! From addresses to names.
//!
//! A process's mappings (`/proc/PID/maps`) say which file an address belongs to; the file's
//! debugging information names the function there and those inlined into it, its symbol table the
//! function where there is none. Kernel addresses are looked up in `/proc/kallsyms`, which shows
//! them to those who may see them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use addr2line::Context;
use addr2line::gimli::{Dwarf, EndianSlice, NativeEndian, SectionId};
use object::read::ReadCache;
use object::{Object, ObjectSection};

/// Kernel addresses start here on every architecture with 64-bit addresses that Linux runs on.
const KERNEL: u64 = 1 << 63;

/// Ends the names of kernel functions, as in other tools' folded stacks.
const IN_KERNEL: &str = "_[k]";

/// Whether a name is a kernel function's.
pub fn is_kernel(name: &str) -> bool {
    name.ends_with(IN_KERNEL) || name == UNNAMED_KERNEL
}

const UNNAMED_KERNEL: &str = "[kernel]";

/// The functions at an address, outermost first: one, and those inlined into it.
pub type Names = Vec<String>;

/// Where the files that a process runs are in its memory.
pub struct Mappings(Vec<Mapping>);

/// A part of a file in memory.
#[derive(Debug, PartialEq, Eq)]
struct Mapping {
    start: u64,
    end: u64,
    /// What is to be taken off an address to get the file's own.
    bias: u64,
    path: PathBuf,
}

impl Mappings {
    /// Of a live process; one that has ended has none, and its addresses stay unknown.
    pub fn of(pid: u32) -> Mappings {
        let maps = fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
        Mappings(parse(&maps, is_fixed))
    }

    fn at(&self, address: u64) -> Option<&Mapping> {
        let at = self.0.partition_point(|m| m.end <= address);
        self.0.get(at).filter(|m| m.start <= address)
    }

    /// Names addresses of user and kernel. Each file is opened once and closed again: its debugging
    /// information may be much larger than what is kept of it.
    pub fn name(&self, addresses: &BTreeSet<u64>, kernel: &KernelSymbols) -> HashMap<u64, Names> {
        let mut named = HashMap::with_capacity(addresses.len());
        let mut by_file: BTreeMap<&Path, Vec<(u64, u64)>> = BTreeMap::new();
        for &address in addresses {
            if address >= KERNEL {
                named.insert(address, vec![kernel.at(address)]);
            } else if let Some(mapping) = self.at(address) {
                let own = (address, address - mapping.bias);
                by_file.entry(&mapping.path).or_default().push(own);
            } else {
                named.insert(address, vec!["[unknown]".to_owned()]);
            }
        }
        for (path, wanted) in by_file {
            // A file that is gone or is no ELF file ([vdso]) names nothing.
            let found = names_in(path, &wanted).unwrap_or_default();
            named.extend(found);
            for (address, _) in wanted {
                named
                    .entry(address)
                    .or_insert_with(|| vec![file_name(path)]);
            }
        }
        named
    }
}

/// Names (address, the file's own address) by the file's debugging information and symbol table.
fn names_in(
    path: &Path,
    wanted: &[(u64, u64)],
) -> Result<HashMap<u64, Names>, Box<dyn std::error::Error>> {
    let cache = ReadCache::new(fs::File::open(path)?);
    let file = object::File::parse(&cache)?;
    let section = |id: SectionId| {
        // Compressed ones are passed over; then there are symbols still.
        let section = file.section_by_name(id.name());
        let data = section.and_then(|section| section.data().ok());
        EndianSlice::new(data.unwrap_or(&[]), NativeEndian)
    };
    let dwarf = Dwarf::load(|id| Ok::<_, addr2line::gimli::Error>(section(id)))?;
    let context = Context::from_dwarf(dwarf)?;
    let symbols = file.symbol_map();
    let mut named = HashMap::with_capacity(wanted.len());
    for &(address, own) in wanted {
        let mut names = Names::new();
        // Only split debugging information, which we do not make, needs more to be loaded.
        if let Ok(mut frames) = context.find_frames(own).skip_all_loads() {
            while let Ok(Some(frame)) = frames.next() {
                let name = frame.function.as_ref().and_then(|f| f.raw_name().ok());
                let file = frame.location.as_ref().and_then(|l| l.file);
                names.extend(name.map(|name| placed(&readable(&name), file)));
            }
        }
        // The frames come innermost first.
        names.reverse();
        if names.is_empty() {
            names.extend(
                symbols
                    .containing(own)
                    .map(|symbol| readable(symbol.name())),
            );
        }
        if !names.is_empty() {
            named.insert(address, names);
        }
    }
    Ok(named)
}

/// Without mangling and hashes, and without what separates frames in folded stacks.
fn readable(symbol: &str) -> String {
    format!("{:#}", rustc_demangle::demangle(symbol)).replace(';', ",")
}

/// A name with its module. Line tables name an inlined function without its path (`lock<T>`), so
/// that is put together from the file it stands in; parameters are left off, which would name the
/// modules of others.
fn placed(name: &str, file: Option<&str>) -> String {
    let generic = name.find('<').filter(|at| *at > 0);
    let bare = &name[..generic.unwrap_or(name.len())];
    match file.and_then(module) {
        Some(module) if !bare.contains("::") && !bare.starts_with('<') => {
            format!("{module}::{bare}")
        }
        _ => name.to_owned(),
    }
}

/// `…/crates/sync/src/spin.rs` is `throng_sync::spin`, `…/library/core/src/option.rs` is
/// `core::option`, and `…/bytes-1.12.1/src/lib.rs` is `bytes`.
fn module(file: &str) -> Option<String> {
    let (package, path) = file.rsplit_once("/src/")?;
    let (above, package) = package.rsplit_once('/').unwrap_or(("", package));
    let version = package.rfind("-").filter(|at| {
        let rest = package.as_bytes().get(at + 1);
        rest.is_some_and(u8::is_ascii_digit)
    });
    let mut module = package[..version.unwrap_or(package.len())].replace('-', "_");
    if above == "crates" || above.ends_with("/crates") {
        module.insert_str(0, "throng_");
    }
    let parts = path.trim_end_matches(".rs").split('/');
    for part in parts.filter(|part| !matches!(*part, "lib" | "main" | "mod")) {
        module.push_str("::");
        module.push_str(part);
    }
    Some(module)
}

fn file_name(path: &Path) -> String {
    let name = path.file_name().unwrap_or(path.as_os_str());
    format!("[{}]", name.to_string_lossy().trim_matches(['[', ']']))
}

/// Reads `/proc/PID/maps`: `start-end perms offset dev inode path`, ascending.
///
/// A file that may be loaded anywhere is linked for address 0, so its bias is where its first byte
/// is mapped; `fixed` tells which are linked for where they are.
fn parse(maps: &str, fixed: impl Fn(&Path) -> bool) -> Vec<Mapping> {
    let mut found: Vec<Mapping> = Vec::new();
    for line in maps.lines() {
        let mut fields = line.splitn(6, ' ');
        let Some((range, path)) = fields.next().zip(fields.nth(4)) else {
            continue;
        };
        let Some((start, end)) = range.split_once('-') else {
            continue;
        };
        let hex = |text| u64::from_str_radix(text, 16).ok();
        let Some((start, end)) = hex(start).zip(hex(end)) else {
            continue;
        };
        let path = PathBuf::from(path.trim().trim_end_matches(" (deleted)"));
        if path.as_os_str().is_empty() {
            continue;
        }
        let bias = match found.iter().find(|m| m.path == path) {
            Some(first) => first.bias,
            None if fixed(&path) => 0,
            None => start,
        };
        found.push(Mapping {
            start,
            end,
            bias,
            path,
        });
    }
    found
}

/// Whether an ELF file is linked for one address (`e_type` 2, ET_EXEC).
fn is_fixed(path: &Path) -> bool {
    use std::io::Read;
    let mut head = [0; 18];
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut head));
    read.is_ok() && head.starts_with(b"\x7fELF") && head[16] == 2
}

/// The kernel's functions by address.
pub struct KernelSymbols {
    ascending: Vec<(u64, String)>,
}

impl KernelSymbols {
    /// None are known where the kernel hides its addresses.
    pub fn load() -> KernelSymbols {
        let text = fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let mut ascending: Vec<(u64, String)> = text.lines().filter_map(kernel_symbol).collect();
        ascending.sort_unstable();
        KernelSymbols { ascending }
    }

    pub fn none() -> KernelSymbols {
        KernelSymbols {
            ascending: Vec::new(),
        }
    }

    fn at(&self, address: u64) -> String {
        let next = self
            .ascending
            .partition_point(|(start, _)| *start <= address);
        match next.checked_sub(1) {
            Some(at) => format!("{}{IN_KERNEL}", self.ascending[at].1),
            None => UNNAMED_KERNEL.to_owned(),
        }
    }
}

/// `address type name`, for functions that are not hidden.
fn kernel_symbol(line: &str) -> Option<(u64, String)> {
    let mut fields = line.split_ascii_whitespace();
    let address = u64::from_str_radix(fields.next()?, 16).ok()?;
    let is_code = matches!(fields.next()?, "t" | "T" | "w" | "W");
    (is_code && address != 0).then(|| Some((address, fields.next()?.to_owned())))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mappings_are_read() {
        let maps = "\
55d000000000-55d000010000 r--p 00000000 fe:00 17      /usr/bin/throng (deleted)
55d000010000-55d000050000 r-xp 00010000 fe:00 17      /usr/bin/throng (deleted)
7f0000000000-7f0000001000 rw-p 00000000 00:00 0 
00400000-00500000 r-xp 00000000 fe:00 18 /opt/a fixed one
";
        let found = parse(maps, |path| path == Path::new("/opt/a fixed one"));
        assert_eq!(found.len(), 3);
        assert_eq!(found[1].path, Path::new("/usr/bin/throng"));
        assert_eq!(found[1].bias, 0x55d0_0000_0000);
        assert_eq!((found[2].start, found[2].bias), (0x40_0000, 0));
    }

    #[test]
    fn names_are_readable() {
        assert_eq!(
            readable("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE"),
            "core::fmt::Write::write_fmt"
        );
        assert_eq!(readable("[u8; 4]"), "[u8, 4]");
        assert_eq!(readable("memcpy"), "memcpy");
        assert_eq!(
            kernel_symbol("ffffffff81000000 T _stext"),
            Some((0xffff_ffff_8100_0000, "_stext".into()))
        );
        assert_eq!(kernel_symbol("0000000000000000 T hidden"), None);
    }

    #[test]
    fn inlined_functions_get_their_modules_back() {
        let module = |file| module(file).expect("a module");
        assert_eq!(module("/w/crates/sync/src/spin.rs"), "throng_sync::spin");
        assert_eq!(
            module("crates/lab/src/case/atomics.rs"),
            "throng_lab::case::atomics"
        );
        assert_eq!(
            module("/rustc/5980/library/core/src/sync/atomic.rs"),
            "core::sync::atomic"
        );
        assert_eq!(
            module("/r/src/index-1/hash-brown-1.12.1/src/lib.rs"),
            "hash_brown"
        );
        let spin = Some("/w/crates/sync/src/spin.rs");
        assert_eq!(
            placed("lock<throng_txn::clock::Clock>", spin),
            "throng_sync::spin::lock"
        );
        assert_eq!(
            placed("{closure#1}", spin),
            "throng_sync::spin::{closure#1}"
        );
        assert_eq!(placed("a::b<c>", spin), "a::b<c>");
        assert_eq!(placed("<a as b>::c", spin), "<a as b>::c");
        assert_eq!(placed("memcpy", None), "memcpy");
    }

    #[inline(never)]
    fn somewhere() -> u64 {
        somewhere as *const () as u64
    }

    #[test]
    fn a_function_of_this_process_is_named() {
        let address = somewhere();
        let mappings = Mappings::of(std::process::id());
        let named = mappings.name(&BTreeSet::from([address, 1]), &KernelSymbols::none());
        assert_eq!(named[&1], ["[unknown]"]);
        let names = &named[&address];
        let last = names.last().expect("a name");
        assert!(last.contains("somewhere"), "{names:?}");
    }
}
