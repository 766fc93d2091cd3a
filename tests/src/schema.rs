//! JSON schemas as judges of what the commands print: ours in docs/schema, others' in tests/schemas.

use std::fmt;
use std::fs;

use jsonschema::Validator;
use serde_json::Value;

use crate::source::repository;

/// A schema that documents are held against.
pub struct Schema {
    name: String,
    validator: Validator,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Schema").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Schema {
    /// A file of the repository.
    ///
    /// # Panics
    ///
    /// When it cannot be read or is no schema.
    pub fn read(path: &str) -> Self {
        Self::new(path, &text(path))
    }

    fn new(path: &str, text: &str) -> Self {
        let schema: Value = serde_json::from_str(text).expect(path);
        let options = jsonschema::options().should_validate_formats(true);
        let validator = options.build(&schema).unwrap_or_else(|error| panic!("{path}: {error}"));
        Self { name: path.to_owned(), validator }
    }

    /// The schema of what a command prints: `docs/schema/<command>.schema.json`.
    pub fn of(command: &str) -> Self {
        Self::read(&format!("docs/schema/{command}.schema.json"))
    }

    /// The official schema of SARIF 2.1.0.
    ///
    /// # Panics
    ///
    /// When it cannot be read or is no schema.
    pub fn sarif() -> Self {
        let path = "tests/schemas/sarif-2.1.0.json";
        // As published, the pattern of languages has a `]` that nothing opened: itself in the old
        // syntax of regular expressions, an error in the one that JSON Schema asks for.
        let text = text(path);
        let mended = text.replace("[a-zA-Z]{2}]?$", r"[a-zA-Z]{2}\\]?$");
        assert_ne!(text, mended, "{path} needs no mending any more");
        Self::new(path, &mended)
    }

    /// What is wrong with a document, each with its place.
    pub fn violations(&self, document: &Value) -> Vec<String> {
        self.validator
            .iter_errors(document)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect()
    }

    /// Stops the test when the document is not as the schema says.
    ///
    /// # Panics
    ///
    /// When there is a violation.
    #[track_caller]
    pub fn assert_accepts(&self, document: &Value) {
        let violations = self.violations(document);
        assert!(violations.is_empty(), "{}: {}\n{document}", self.name, violations.join("\n"));
    }

    /// Stops the test when the document, changed in this way, is still as the schema says: a judge
    /// that never condemns is none.
    ///
    /// # Panics
    ///
    /// When the changed document is accepted.
    #[track_caller]
    pub fn assert_notices(&self, document: &Value, change: impl FnOnce(&mut Value)) {
        let mut changed = document.clone();
        change(&mut changed);
        assert_ne!(changed, *document, "nothing was changed");
        assert!(!self.violations(&changed).is_empty(), "{} accepts {changed}", self.name);
    }
}

fn text(path: &str) -> String {
    fs::read_to_string(repository().join(path)).expect(path)
}
