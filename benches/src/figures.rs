//! What criterion wrote down of its last run.

use std::cmp::Ordering;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// Names of what a measurement is held against, in the same group and the same run.
const BASELINES: &[&str] = &["native", "bare"];

/// What performance is aimed at, by the start of a figure's name. The first that fits counts.
const AIMS: &[(&str, &str)] = &[
    ("decision/348 B", "what an instance costs weighs more"),
    ("decision/638 B", "what an instance costs weighs more"),
    ("decision/1 MB, 100 DELETEs", "≤ 1 s"),
    ("decision/", "≤ 1.25"),
    ("process/check of one", "≤ 30 ms"),
    ("process/check of", "≥ 10 MB/s and core"),
    ("step/", "≤ 1.10"),
    ("duplicate", "1 round trip"),
    ("takeover", "≤ 3 round trips and the kill"),
    ("outbox_claim/", "the same for all"),
    ("workers/", "fewer with more workers"),
];

/// One measurement.
#[derive(Debug, Clone)]
pub struct Figure {
    group: String,
    function: Option<String>,
    /// The median, in nanoseconds.
    pub nanoseconds: f64,
    bytes: Option<f64>,
}

impl Figure {
    /// What was measured.
    pub fn name(&self) -> String {
        match &self.function {
            Some(function) if !self.group.contains('/') => format!("{}/{function}", self.group),
            Some(function) if self.group.contains("process") => {
                format!("{}/{function}", self.group)
            }
            _ => self.group.clone(),
        }
    }

    /// Whether it is there to be compared with.
    pub fn is_baseline(&self) -> bool {
        self.function.as_deref().is_some_and(|function| BASELINES.contains(&function))
    }

    /// Whether the other one is compared with it.
    pub fn is_baseline_of(&self, other: &Self) -> bool {
        self.is_baseline() && self.group == other.group
    }

    /// The time, in a unit that reads well.
    pub fn time(&self) -> String {
        match self.nanoseconds {
            time if time < 1e6 => format!("{:.1} µs", time / 1e3),
            time if time < 1e9 => format!("{:.1} ms", time / 1e6),
            time => format!("{:.2} s", time / 1e9),
        }
    }

    /// Megabytes per second, where bytes were counted.
    pub fn rate(&self) -> Option<String> {
        self.bytes.map(|bytes| format!("{:.1} MB/s", bytes / self.nanoseconds * 1e3))
    }

    /// What it should be.
    pub fn aim(&self) -> &'static str {
        let name = self.name();
        AIMS.iter().find(|(start, _)| name.starts_with(start)).map_or("", |(_, aim)| aim)
    }
}

/// Every figure below a folder of criterion's: what belongs together together, the smallest first.
pub fn read(folder: &Path) -> Vec<Figure> {
    let mut figures = Vec::new();
    collect(folder, &mut figures);
    figures.sort_by(|one, other| {
        let kind = |figure: &Figure| figure.group.split('/').next().unwrap_or_default().to_owned();
        let size = |figure: &Figure| figure.bytes.unwrap_or_default();
        (kind(one), size(one))
            .partial_cmp(&(kind(other), size(other)))
            .unwrap_or(Ordering::Equal)
            .then_with(|| one.name().cmp(&other.name()))
    });
    figures
}

fn collect(folder: &Path, figures: &mut Vec<Figure>) {
    let Ok(entries) = fs::read_dir(folder) else {
        return;
    };
    for path in entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()) {
        if path.ends_with("new") {
            figures.extend(figure(&path));
        } else {
            collect(&path, figures);
        }
    }
}

fn figure(folder: &Path) -> Option<Figure> {
    let json = |name: &str| -> Option<Value> {
        serde_json::from_slice(&fs::read(folder.join(name)).ok()?).ok()
    };
    let (named, measured) = (json("benchmark.json")?, json("estimates.json")?);
    let text = |name: &str| named[name].as_str().map(str::to_owned);
    Some(Figure {
        group: text("group_id")?,
        function: text("function_id").or_else(|| text("value_str")),
        nanoseconds: measured["median"]["point_estimate"].as_f64()?,
        bytes: named["throughput"]["Bytes"].as_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figure(group: &str, function: Option<&str>, nanoseconds: f64) -> Figure {
        let function = function.map(str::to_owned);
        Figure { group: group.to_owned(), function, nanoseconds, bytes: Some(1e6) }
    }

    #[test]
    fn a_figure_is_held_against_the_one_of_its_group() {
        let sandbox = figure("decision/16 kB, many", Some("sandbox"), 2e6);
        let native = figure("decision/16 kB, many", Some("native"), 1e6);
        let other = figure("decision/3 kB", Some("native"), 1e6);
        assert!(native.is_baseline_of(&sandbox) && !other.is_baseline_of(&sandbox));
        assert!(!sandbox.is_baseline());
        assert_eq!((sandbox.name().as_str(), sandbox.aim()), ("decision/16 kB, many", "≤ 1.25"));
        assert_eq!(figure("load", Some("compiled"), 1.0).name(), "load/compiled");
    }

    #[test]
    fn times_and_rates_are_in_units_that_read_well() {
        let times = [1_500.0, 2_500_000.0, 3.5e9].map(|time| figure("a", None, time).time());
        assert_eq!(times, ["1.5 µs", "2.5 ms", "3.50 s"]);
        assert_eq!(figure("a", None, 1e9).rate().as_deref(), Some("1.0 MB/s"));
    }
}
