//! docs/policy-authors.md and docs/decision-digest.md say what is so: their excerpts are of the files
//! they name, their commands run, their numbers are the program's.

use std::fs;

use serde_json::Value;
use tollgate::policy::{
    GUEST_FUEL_MAX, GUEST_INSTANCES_MAX, GUEST_MEMORY_BYTES_MAX, GUEST_STACK_BYTES_MAX,
    GUEST_TABLE_ELEMENTS_MAX, GUEST_TABLES_MAX, PROTECTED_TABLES,
};
use tollgate_tests::cli;
use tollgate_tests::desk::Desk;
use tollgate_tests::guide::{bash, blocks, page};
use tollgate_tests::oci::OciRegistry;
use tollgate_tests::source::repository;

/// What an excerpt is of, and whether it is there word for word.
fn is_excerpt(block: &str) -> bool {
    let (path, text) = block.split_once('\n').unwrap();
    let path = path.strip_prefix("// ").expect("an excerpt begins with the file it is of");
    fs::read_to_string(repository().join(path)).expect(path).contains(text)
}

#[test]
fn excerpts_are_of_the_files_they_name() {
    let excerpts = blocks(&page("policy-authors.md"), "rust");
    assert!(excerpts.len() >= 3);
    for excerpt in excerpts {
        assert!(is_excerpt(&excerpt), "not in the file it names:\n{excerpt}");
    }
    assert!(!is_excerpt("// tests/policies/drop-only/src/lib.rs\nfn nothing_of_the_kind()\n"));
}

#[test]
fn the_commands_of_the_walk_do_what_the_page_says() {
    let commands = blocks(&page("policy-authors.md"), "sh").concat();
    let temporary = tempfile::tempdir().unwrap();
    let mut bash = bash(&repository(), &commands);
    let registry = OciRegistry::start();
    bash.env("TMPDIR", temporary.path())
        .env("REGISTRY", format!("127.0.0.1:{}", registry.port()))
        .env("DOCKER_CONFIG", temporary.path())
        .env_remove("TOLLGATE_POLICY_KEY");
    let run = cli::run(&mut bash);
    assert_eq!(run.code(), Some(0), "{run:?}");
    for told in [
        "drop-only 0.1.0 for sql-jdbc:v1, sha256:",
        "imports       none",
        "allowed  -  (1 statement)",
        "+DROP TABLE IF EXISTS old_orders;",
        "denied, as it should be",
        "\"code\":\"not-a-drop\"",
        "drop-only-0.1.0.wasm: the source gives the pinned bytes",
        "drop-only 0.1.0 is published at 127.0.0.1:",
        "signed by the key ",
        "       0  denied before, allowed after",
        "+name = \"drop-only\"",
    ] {
        assert!(run.stdout.contains(told), "`{told}` is not in\n{}\n{}", run.stdout, run.stderr);
    }
}

#[test]
fn every_option_that_is_named_exists() {
    let page = page("policy-authors.md");
    let lines = blocks(&page, "sh").concat();
    let prose: String = page.split("```").step_by(2).collect();
    let commands: Vec<&str> = lines
        .lines()
        .chain(prose.split('`').skip(1).step_by(2))
        .filter_map(|text| text.find("tollgate ").and_then(|at| text.get(at..)))
        .collect();
    let mut options = 0;
    for command in commands {
        let words: Vec<&str> = command.split_whitespace().skip(1).collect();
        let is_word = |word: &&&str| word.bytes().all(|b| b.is_ascii_lowercase());
        let names: Vec<&str> = words.iter().take_while(is_word).take(2).copied().collect();
        let help = help(&names);
        for option in words.iter().filter(|word| word.starts_with("--")) {
            assert!(help.contains(option), "`{option}` of `{command}`");
            options += 1;
        }
    }
    assert!(options >= 5, "{options}");
}

/// The help of a command; the second name may be an argument already.
fn help(names: &[&str]) -> String {
    let desk = Desk::new();
    (1..=names.len())
        .rev()
        .map(|count| desk.run(&[&names[..count], &["--help"]].concat()))
        .find(|run| run.code() == Some(0))
        .unwrap_or_else(|| panic!("`{}` is no command", names.join(" ")))
        .stdout
}

/// A number as the page writes it: in groups of three.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap())
        .collect();
    groups.join(",")
}

#[test]
fn the_bounds_are_the_program_s() {
    let page = page("policy-authors.md");
    assert_eq!(grouped(1_048_576), "1,048,576");
    for row in [
        format!("| linear memory | {} bytes", grouped(GUEST_MEMORY_BYTES_MAX as u64)),
        format!("| stack of the machine code | {} bytes", grouped(GUEST_STACK_BYTES_MAX as u64)),
        format!("| fuel | {} units", grouped(GUEST_FUEL_MAX)),
        format!(
            "| tables | {GUEST_TABLES_MAX}, of {} elements",
            grouped(GUEST_TABLE_ELEMENTS_MAX as u64)
        ),
        format!("| core instances | {GUEST_INSTANCES_MAX} |"),
    ] {
        assert!(page.contains(&row), "the page has no `{row}`");
    }
    let script = fs::read_to_string(repository().join("script/build-policy")).unwrap();
    assert!(page.contains("-zstack-size=1048576") && script.contains("stack_bytes=1048576"));
}

#[test]
fn every_kind_of_no_decision_is_told() {
    let schema = fs::read_to_string(repository().join("docs/schema/check.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let kinds = &schema["properties"]["error"]["properties"]["kind"]["enum"];
    let mut kinds: Vec<&str> =
        kinds.as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    // Of a file or of a ledger's export, not of a policy.
    let others = [
        "unreadable",
        "payload-missing",
        "policy-missing",
        "pruned",
        "receipt-damaged",
        "export-line",
    ];
    kinds.retain(|kind| !others.contains(kind));
    let page = page("policy-authors.md");
    let (_, table) = page.split_once("| no decision | because |").unwrap();
    let table = table.split("\n\n").next().unwrap();
    let mut told: Vec<&str> =
        table.lines().filter_map(|row| row.strip_prefix("| `")?.split('`').next()).collect();
    kinds.sort_unstable();
    told.sort_unstable();
    assert_eq!(told, kinds);
}

#[test]
fn the_digest_s_page_names_what_the_host_asks_with() {
    let [table] = PROTECTED_TABLES else { panic!("the page says there is one protected table") };
    assert!(page("decision-digest.md").contains(&format!("the one table `{table}`")));
}
