//! Who may see a password, and that what could hold one does not print itself: read from the sources.

use proc_macro2::{TokenStream, TokenTree};
use tollgate_tests::source::{repository, sources};

/// Types of others that hold an account, a key or a server's own words, and print them.
const TELLTALES: &[&str] =
    &["Opts", "OptsBuilder", "Conn", "DriverError", "RegistryAuth", "mysql_async"];

#[test]
fn a_password_is_exposed_where_a_session_is_opened_and_nowhere_else() {
    let mut exposed = Vec::new();
    for source in sources(&repository().join("host/src")) {
        let calls = source.places_of(&["expose_secret", "("]);
        exposed.extend(calls.iter().map(|place| place.path.display().to_string()));
        let mut names = Vec::new();
        collect(source.tokens.clone(), &mut names);
        if names.iter().any(|name| name == "expose_secret") {
            exposed.push(source.path.display().to_string());
        }
    }
    exposed.dedup();
    assert_eq!(exposed, ["session/open.rs"]);
}

fn collect(tokens: TokenStream, names: &mut Vec<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => collect(group.stream(), names),
            TokenTree::Ident(name) => names.push(name.to_string()),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// The definitions that print every field by themselves, each with its name and all of its tokens.
fn printing_themselves(tokens: TokenStream, found: &mut Vec<(String, Vec<String>)>) {
    let trees: Vec<TokenTree> = tokens.into_iter().collect();
    let mut derives = false;
    let mut at = 0;
    while at < trees.len() {
        match &trees[at] {
            TokenTree::Group(group) => {
                let text = group.stream().to_string();
                if text.starts_with("derive") {
                    derives |= text.contains("Debug");
                }
                // Modules and functions have definitions of their own.
                printing_themselves(group.stream(), found);
            }
            TokenTree::Ident(word) if *word == "struct" || *word == "enum" => {
                let mut names = Vec::new();
                let end = trees[at..].iter().position(|tree| {
                    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == ';')
                        || matches!(tree, TokenTree::Group(group)
                            if group.delimiter() == proc_macro2::Delimiter::Brace)
                });
                let end = end.map_or(trees.len(), |end| at + end + 1);
                collect(trees[at..end].iter().cloned().collect(), &mut names);
                if derives {
                    found.push((names.get(1).cloned().unwrap_or_default(), names));
                }
                derives = false;
                at = end;
                continue;
            }
            TokenTree::Ident(word) if *word == "fn" || *word == "impl" => derives = false,
            _ => {}
        }
        at += 1;
    }
}

#[test]
fn nothing_that_prints_its_fields_holds_what_prints_an_account() {
    let mut all = Vec::new();
    for source in sources(&repository().join("host/src")) {
        let mut found = Vec::new();
        printing_themselves(source.tokens.clone(), &mut found);
        for (name, parts) in &found {
            let telltale = parts.iter().find(|part| TELLTALES.contains(&part.as_str()));
            assert!(telltale.is_none(), "{}: `{name}` holds {telltale:?}", source.path.display());
        }
        all.extend(found.into_iter().map(|(name, _)| name));
    }
    // The scan sees what is known to print itself, and not what is known not to.
    for name in ["Config", "SqlTargetConfig", "TargetError", "LedgerFault", "ConfigErrors"] {
        assert!(all.iter().any(|it| it == name), "`{name}` is not seen: the scan is broken");
    }
    for name in ["Credentials", "JdbcUrl", "Endpoint", "TomlFile", "Payload", "Findings"] {
        assert!(!all.iter().any(|it| it == name), "`{name}` prints all of itself");
    }
}
