//! The whole repository against the rules. `THRONG_TIDY=record` writes the list anew.

use std::fs;

use throng_tidy::{complaints, files, offences, root};

#[test]
fn the_repository_is_tidy() {
    let found = offences(&files());
    let list = root().join("tests/tidy/offenders.txt");
    if std::env::var("THRONG_TIDY").is_ok_and(|word| word == "record") {
        let head =
            "# What breaks a rule today: rule, path, item, measure. The list may only shrink.\n";
        let lines: String = found.iter().map(|offence| format!("{offence}\n")).collect();
        fs::write(&list, format!("{head}{lines}")).expect("the list can be written");
        return;
    }
    let listed = fs::read_to_string(&list).expect("there is a list");
    let complaints = complaints(&found, &listed);
    assert!(complaints.is_empty(), "\n{}\n", complaints.join("\n"));
}
