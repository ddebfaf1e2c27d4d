//! From a stack of addresses to a line of names.
//!
//! A stack of an asynchronous server is mostly its runtime's: dozens of frames between a thread's
//! start and the first function that means something, a dozen more around every poll. Of each run
//! of such frames the innermost one stays.

use std::collections::HashMap;

use super::symbol::Names;

/// The addresses to look up, innermost first. Callers are known by where they will go on, which may
/// be the next function's first byte; the byte before is theirs.
pub fn calls(stack: &[u64]) -> impl DoubleEndedIterator<Item = u64> {
    let here = stack.first().copied();
    let callers = stack
        .iter()
        .skip(1)
        .map(|address| address.saturating_sub(1));
    here.into_iter().chain(callers)
}

/// `;outer;…;inner`
///
/// Begins with the first function that is not the start of a thread; a stack of nothing else is
/// kept.
pub fn frames(stack: &[u64], names: &HashMap<u64, Names>) -> String {
    let all: Vec<&String> = calls(stack)
        .rev()
        .flat_map(|address| &names[&address])
        .collect();
    let start = all.iter().position(|name| !is_start(name)).unwrap_or(0);
    let mut text = String::new();
    let mut kept = all[start..].iter().peekable();
    while let Some(name) = kept.next() {
        let hidden = is_runtime(name) && kept.peek().is_some_and(|inner| is_runtime(inner));
        if !hidden {
            text.push(';');
            text.push_str(name);
        }
    }
    text
}

/// What every thread runs before its own work.
fn is_start(name: &str) -> bool {
    const C: [&str; 6] = [
        "_start",
        "main",
        "__libc_start_main",
        "start_thread",
        "clone3",
        "__clone",
    ];
    is_standard(name) || C.contains(&name) || name.starts_with("[libc") || name == "[unknown]"
}

/// What only hands its arguments to the kernel.
pub fn is_system_call(name: &str) -> bool {
    name.starts_with("rustix::backend::") || name.starts_with("[libc") || name == "syscall"
}

/// What calls futures and closures, and is not what they do.
fn is_runtime(name: &str) -> bool {
    is_standard(name) || is_of(name, "tokio")
}

fn is_standard(name: &str) -> bool {
    ["std", "core", "alloc"]
        .iter()
        .any(|package| is_of(name, package))
}

/// `package::…` or `<package::…`
fn is_of(name: &str, package: &str) -> bool {
    let path = name.strip_prefix('<').unwrap_or(name);
    let rest = path.strip_prefix(package);
    rest.is_some_and(|rest| rest.starts_with("::"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(names: &[(u64, &[&str])]) -> HashMap<u64, Names> {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        names
            .iter()
            .map(|(address, names)| (*address, owned(names)))
            .collect()
    }

    #[test]
    fn stacks_begin_where_the_work_begins_and_leave_out_the_runtime() {
        // Callers are looked up one byte before where they go on.
        let names = named(&[
            (9, &["clone3"]),
            (8, &["std::thread::start", "core::ops::call_once"]),
            (
                7,
                &[
                    "throng_server::serve",
                    "tokio::task::a",
                    "<core::b as C>::d",
                    "tokio::task::poll",
                ],
            ),
            (6, &["throng_exec::run", "corez::own"]),
            (5, &["core::hint::black_box", "core::hint::spin_loop"]),
        ]);
        assert_eq!(
            frames(&[5, 7, 8, 9, 10], &names),
            ";throng_server::serve;tokio::task::poll;throng_exec::run;corez::own;core::hint::spin_loop"
        );
        assert_eq!(frames(&[8, 10], &names), ";clone3;core::ops::call_once");
        assert_eq!(frames(&[], &names), "");
    }
}
