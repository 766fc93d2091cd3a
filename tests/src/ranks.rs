//! The order of the host's modules: a module may use modules of lower rank only.
//!
//! The ranks are those of the table in ARCHITECTURE.md, so that what people read there is what is
//! enforced.

use std::collections::BTreeMap;

use crate::source::{CratePath, Source};

/// Ranks by module, as ARCHITECTURE.md has them.
pub type Ranks = BTreeMap<String, u32>;

/// Reads the table whose columns start with `rank` and `modules`; modules stand in backticks.
pub fn parse_table(markdown: &str) -> Result<Ranks, String> {
    let mut ranks = Ranks::new();
    let mut rows = markdown.lines().map(cells).skip_while(|cells| {
        !matches!(cells.as_slice(), [rank, modules, ..] if *rank == "rank" && *modules == "modules")
    });
    rows.next().ok_or("there is no table with the columns `rank` and `modules`")?;
    for row in rows.skip(1).take_while(|row| !row.is_empty()) {
        let [rank, modules, ..] = row.as_slice() else {
            return Err(format!("a row of the rank table has no modules: {row:?}"));
        };
        let rank = rank.parse().map_err(|_| format!("`{rank}` is not a rank"))?;
        for module in modules.split('`').skip(1).step_by(2) {
            if ranks.insert(module.to_owned(), rank).is_some() {
                return Err(format!("`{module}` is in the rank table twice"));
            }
        }
    }
    Ok(ranks)
}

/// The cells of a table row; none for a line that is no row.
fn cells(line: &str) -> Vec<&str> {
    let Some(row) = line.trim().strip_prefix('|') else {
        return Vec::new();
    };
    row.trim_end_matches('|').split('|').map(str::trim).collect()
}

/// The modules a crate's root declares.
pub fn declared_modules(root: &Source) -> Vec<String> {
    let tokens: Vec<String> =
        root.tokens.clone().into_iter().map(|tree| tree.to_string()).collect();
    tokens
        .windows(3)
        .filter(|window| window[0] == "mod" && window[2] == ";")
        .map(|window| window[1].clone())
        .collect()
}

/// Every use of a module that is not of lower rank, and every use of the crate's root.
pub fn violations(sources: &[Source], ranks: &Ranks) -> Vec<String> {
    let mut found = Vec::new();
    for source in sources {
        let Some(own) = source.top() else { continue };
        let Some(own_rank) = ranks.get(own) else {
            found.push(format!("{}: `{own}` has no rank", source.path.display()));
            continue;
        };
        found.extend(
            source.crate_paths().iter().filter_map(|path| violation(path, own, *own_rank, ranks)),
        );
    }
    found
}

fn violation(path: &CratePath, own: &str, own_rank: u32, ranks: &Ranks) -> Option<String> {
    let place = &path.place;
    let Some(used) = path.segments.first() else {
        return Some(format!("{place}: `{own}` names the root of the crate"));
    };
    match ranks.get(used) {
        _ if used == own => None,
        None => Some(format!("{place}: `{own}` uses `{used}`, which is no module with a rank")),
        Some(rank) if *rank < own_rank => None,
        Some(rank) => {
            Some(format!("{place}: `{own}` (rank {own_rank}) uses `{used}` (rank {rank})"))
        }
    }
}
