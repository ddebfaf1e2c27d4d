//! Directories with pieces missing, cut, flipped, swapped, or of another directory: the start
//! refuses and names the piece, or what is there is right; `throng check` names it as well.
//!
//! `THRONG_PIECES=all` damages every file in every way, which takes some minutes; else some of
//! them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::client::Client;
use crate::server::Home;

/// What a client finds in a directory that is whole.
const QUESTIONS: [(&str, &str); 5] = [
    ("select count(*) || ' ' || sum(n) from item", "3000 4501500"),
    ("select count(*) || ' ' || sum(n) from late", "400 80200"),
    ("select n from item where id = 2999", "2999"),
    ("select sum(length(body)) from large", "1280000"),
    (
        "select count(*) from item where id in (select n from late)",
        "400",
    ),
];

#[derive(Clone, Copy, Debug)]
enum Damage {
    Remove,
    /// To half its length.
    Cut,
    /// One bit, in the midst of what is written.
    Flip,
    /// With the next file of its directory.
    Swap,
}

const DAMAGES: [Damage; 4] = [Damage::Remove, Damage::Cut, Damage::Flip, Damage::Swap];

/// A directory that was killed long after its last checkpoint.
fn killed() -> Home {
    let home = Home::new();
    let server = home.serve(&["--set", "autovacuum=off"]);
    let mut client = server.connect();
    client.run("create table item (id int primary key, n int)");
    client.run("insert into item select i, i from generate_series(1, 3000) i");
    client.run("create table large (id int primary key, body text)");
    client.run(
        "insert into large select i, (select string_agg(md5((i * j)::text), '') from generate_series(1, 2000) j) \
         from generate_series(1, 20) i",
    );
    client.run("create sequence counter");
    client.run("select nextval('counter')");
    client.run("checkpoint");
    client.run("create table late (n int)");
    for n in 1..=400 {
        client.run(&format!("insert into late values ({n})"));
    }
    drop(client);
    server.kill();
    home
}

/// The same after an orderly stop.
fn stopped(killed: &Home) -> Home {
    let home = copy(killed);
    assert!(home.serve(&[]).stop().success());
    home
}

fn copy(home: &Home) -> Home {
    let new = Home::new();
    copy_directory(&home.data(), &new.data());
    new
}

fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a directory");
    for entry in fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let target = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copy_directory(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).expect("copied")),
        }
    }
}

/// The files of a directory, relative to it, in order.
fn files(home: &Home) -> Vec<String> {
    let mut all = vec!["control".to_owned()];
    for dir in ["base", "wal", "xact"] {
        let names = fs::read_dir(home.data().join(dir)).expect("a directory");
        let names = names.map(|entry| entry.expect("an entry").file_name());
        all.extend(names.map(|name| format!("{dir}/{}", name.to_string_lossy())));
    }
    all.sort();
    all
}

/// The paths that a fault may be told with.
fn damage(home: &Home, file: &str, damage: Damage) -> Vec<String> {
    let path = home.data().join(file);
    let mut named = vec![file.to_owned()];
    match damage {
        Damage::Remove => fs::remove_file(&path).expect("removed"),
        Damage::Cut => {
            let file = fs::File::options().write(true).open(&path).expect("opened");
            let len = file.metadata().expect("a length").len();
            file.set_len(len / 2).expect("cut");
        }
        Damage::Flip => {
            let mut bytes = fs::read(&path).expect("read");
            let written = bytes.iter().rposition(|&b| b != 0).unwrap_or(0);
            if let Some(byte) = bytes.get_mut(written / 2) {
                *byte ^= 0x10;
            }
            fs::write(&path, bytes).expect("written");
        }
        Damage::Swap => {
            let all = files(home);
            let at = all.iter().position(|f| f == file).expect("it is there");
            let other = all[(at + 1) % all.len()].clone();
            let (here, there) = (fs::read(&path), fs::read(home.data().join(&other)));
            fs::write(&path, there.expect("read")).expect("written");
            fs::write(home.data().join(&other), here.expect("read")).expect("written");
            named.push(other);
        }
    }
    named
}

/// Every answer is right, or names the piece. Whether all are right.
fn ask_all(client: &mut Client, named: &[String], what: &str) -> bool {
    let mut right = true;
    for (question, expected) in QUESTIONS {
        let answer = client.query(question).expect("an answer");
        match answer.error() {
            None => assert_eq!(answer.value(), expected, "{what}: {question}"),
            Some(error) => {
                right = false;
                let told = named.iter().any(|name| error.message.contains(name));
                assert!(told, "{what}: {question}: {error:?}");
            }
        }
    }
    right
}

fn must_be_named_or_right(template: &Home, file: &str, how: Damage) {
    let what = format!("{how:?} {file}");
    let home = copy(template);
    let named = damage(&home, file, how);
    let checked = copy(&home).run_check(&[]);
    let report = String::from_utf8_lossy(&checked.stdout).into_owned()
        + &String::from_utf8_lossy(&checked.stderr);
    let is_named = |text: &str| named.iter().any(|name| text.contains(name.as_str()));
    match home.try_serve(&["--set", "autovacuum=off"]) {
        Some(server) => {
            let right = ask_all(&mut server.connect(), &named, &what);
            let found = !checked.status.success();
            assert!(right || found, "{what}: check says {report}");
            assert!(!found || is_named(&report), "{what}: check says {report}");
        }
        None => {
            let log = home.log_text();
            assert!(is_named(&log), "{what}: the start says {log}");
            assert!(log.contains("hint: "), "{what}: no way out: {log}");
            assert!(!checked.status.success(), "{what}: check says {report}");
            assert!(is_named(&report), "{what}: check says {report}");
        }
    }
}

#[test]
fn every_piece_is_named_or_what_is_there_is_right() {
    let all = std::env::var("THRONG_PIECES").is_ok_and(|v| v == "all");
    let killed = killed();
    let stopped = stopped(&killed);
    for (template, each) in [(&killed, 7), (&stopped, 11)] {
        for (n, file) in files(template).iter().enumerate() {
            for (m, how) in DAMAGES.into_iter().enumerate() {
                // The few files that are not relations are what a start depends on.
                let chosen = !file.starts_with("base/") && file != "wal/made";
                if all || chosen && (n + m).is_multiple_of(2) || (4 * n + m).is_multiple_of(each) {
                    must_be_named_or_right(template, file, how);
                }
            }
        }
    }
}

fn refusal(home: &Home) -> String {
    assert!(home.try_serve(&[]).is_none(), "it must not start");
    let log = home.log_text();
    let checked = home.run_check(&[]);
    assert_eq!(checked.status.code(), Some(1), "check");
    log
}

fn segments(home: &Home) -> Vec<PathBuf> {
    let log = files(home).into_iter().filter(|f| f.starts_with("wal/0"));
    log.map(|file| home.data().join(file)).collect()
}

#[test]
fn whole_directories_that_are_gone_are_missed() {
    let killed = killed();
    for template in [&killed, &stopped(&killed)] {
        for dir in ["wal", "xact", "base"] {
            let home = copy(template);
            fs::remove_dir_all(home.data().join(dir)).expect("removed");
            assert!(refusal(&home).contains(dir), "{dir}");
            let home = copy(template);
            for file in fs::read_dir(home.data().join(dir)).expect("a directory") {
                fs::remove_file(file.expect("an entry").path()).expect("removed");
            }
            assert!(refusal(&home).contains(&format!("{dir}/")), "{dir}/*");
        }
        // The log's own files alone.
        let home = copy(template);
        for segment in segments(&home) {
            fs::remove_file(segment).expect("removed");
        }
        assert!(refusal(&home).contains("wal/0"));
    }
}

#[test]
fn pieces_of_another_directory_are_known() {
    let (mine, theirs) = (killed(), killed());
    for file in ["control", "wal/made", "xact/00000000"] {
        let home = copy(&mine);
        fs::copy(theirs.data().join(file), home.data().join(file)).expect("copied");
        let log = refusal(&home);
        assert!(log.contains("data directory"), "{file}: {log}");
    }
    // A whole log that is another one's.
    let home = copy(&mine);
    fs::remove_dir_all(home.data().join("wal")).expect("removed");
    copy_directory(&theirs.data().join("wal"), &home.data().join("wal"));
    assert!(refusal(&home).contains("data directory"));
}

/// How far the log is noted to be durable.
fn durable(home: &Home) -> u64 {
    let bytes = fs::read(home.data().join("wal/made")).expect("read");
    u64::from_le_bytes(bytes[24..32].try_into().expect("eight bytes"))
}

/// A log whose newest file was exchanged for one that nothing was written to, or is zeros: nothing
/// behind the end says so.
#[test]
fn the_newest_file_of_the_log_is_missed() {
    let template = Home::new();
    let server = template.serve(&["--set", "autovacuum=off", "--set", "max_wal_size=1GB"]);
    let mut client = server.connect();
    client.run("create table t (n int, filler text)");
    client.run("insert into t select i, repeat('x', 2000) from generate_series(1, 9000) i");
    let second = segments(&template)[1].clone();
    let name = second
        .file_name()
        .expect("a name")
        .to_string_lossy()
        .into_owned();
    let begins = u64::from_str_radix(&name, 16).expect("a place");
    let mut n = 0;
    while durable(&template) <= begins {
        n += 1;
        client.run(&format!("insert into t values ({n}, 'late')"));
        assert!(n < 100_000, "the log's progress is not noted");
    }
    server.kill();
    for exchanged in [true, false] {
        let home = copy(&template);
        let log = segments(&home);
        let unused = log.last().expect("a file made ahead");
        assert!(log.len() > 2);
        match exchanged {
            true => drop(fs::copy(unused, &log[1]).expect("copied")),
            false => fs::write(&log[1], vec![0; 16 << 20]).expect("written"),
        }
        let refused = refusal(&home);
        assert!(refused.contains(&format!("wal/{name}")), "{refused}");
    }
    // As it is, it opens.
    let server = template.serve(&[]);
    let late = server.connect().run(&format!(
        "select count(*) from t where n <= {n} and filler = 'late'"
    ));
    assert_eq!(late.value(), n.to_string());
}
