//! Table definitions.

use super::Printer;
use crate::model::{
    Attribute, ColumnDef, CreateTable, Default, Element, ForeignKey, Index, IndexKind, IndexOption,
    ReferentialAction, TableBody, TableOption, Type, TypeArguments, TypeAttribute,
};
use crate::names::WideName;

impl Printer<'_> {
    pub(super) fn create_table(&mut self, create: &CreateTable) {
        self.put("CREATE TABLE IF NOT EXISTS ");
        self.table(&create.table);
        match &create.body {
            TableBody::Like(table) => {
                self.put(" LIKE ");
                self.table(table);
            }
            TableBody::Defined { columns, elements, options } => {
                self.put(" (");
                self.list(columns, Self::column_def);
                for element in elements {
                    self.put(", ");
                    self.element(element);
                }
                self.put(")");
                for option in options {
                    self.put(" ");
                    self.table_option(option);
                }
            }
        }
    }

    fn column_def(&mut self, column: &ColumnDef) {
        self.name(&column.name);
        self.put(" ");
        self.data_type(&column.data_type);
        for attribute in &column.attributes {
            self.put(" ");
            self.attribute(attribute);
        }
    }

    pub(super) fn data_type(&mut self, data_type: &Type) {
        self.put(data_type.name);
        match &data_type.arguments {
            TypeArguments::None => {}
            TypeArguments::Numbers(numbers) => {
                self.parenthesised(numbers, |printer, number| printer.put(&number.to_string()));
            }
            TypeArguments::Members(members) => {
                self.parenthesised(members, |printer, member| printer.string(member));
            }
        }
        for attribute in &data_type.attributes {
            match attribute {
                TypeAttribute::Unsigned => self.put(" UNSIGNED"),
                TypeAttribute::Signed => self.put(" SIGNED"),
                TypeAttribute::Zerofill => self.put(" ZEROFILL"),
                TypeAttribute::Binary => self.put(" BINARY"),
                TypeAttribute::Charset(charset) => {
                    self.put(" CHARACTER SET ");
                    self.put(charset.as_str());
                }
            }
        }
    }

    fn attribute(&mut self, attribute: &Attribute) {
        match attribute {
            Attribute::Null => self.put("NULL"),
            Attribute::NotNull => self.put("NOT NULL"),
            Attribute::Default(default) => {
                self.put("DEFAULT ");
                self.default_value(default);
            }
            Attribute::OnUpdateNow(digits) => {
                self.put("ON UPDATE ");
                self.now(*digits);
            }
            Attribute::AutoIncrement => self.put("AUTO_INCREMENT"),
            Attribute::PrimaryKey => self.put("PRIMARY KEY"),
            Attribute::Unique => self.put("UNIQUE KEY"),
            Attribute::Comment(text) => {
                self.put("COMMENT ");
                self.string(text);
            }
            Attribute::Collate(collation) => {
                self.put("COLLATE ");
                self.put(collation.as_str());
            }
            Attribute::References(key) => self.references(key),
            Attribute::Check(name, expr) => {
                self.constraint(name.as_ref());
                self.wrapped("CHECK ", |printer| printer.expr(expr));
            }
            Attribute::Generated { expr, stored } => {
                self.wrapped("GENERATED ALWAYS AS ", |printer| printer.expr(expr));
                match stored {
                    None => {}
                    Some(true) => self.put(" STORED"),
                    Some(false) => self.put(" VIRTUAL"),
                }
            }
            Attribute::SerialDefault => self.put("SERIAL DEFAULT VALUE"),
        }
    }

    fn default_value(&mut self, default: &Default) {
        match default {
            Default::Literal(literal) => self.literal(literal),
            Default::Signed(negative, digits) => {
                self.put(if *negative { "-" } else { "+" });
                self.put(digits);
            }
            Default::Now(digits) => self.now(*digits),
            Default::Expr(expr) => self.wrapped("", |printer| printer.expr(expr)),
        }
    }

    fn now(&mut self, digits: Option<u32>) {
        self.put("CURRENT_TIMESTAMP");
        if let Some(digits) = digits {
            self.put(&format!("({digits})"));
        }
    }

    fn constraint(&mut self, name: Option<&WideName>) {
        if let Some(name) = name {
            self.put("CONSTRAINT ");
            self.quoted(name.as_str());
            self.put(" ");
        }
    }

    fn element(&mut self, element: &Element) {
        match element {
            Element::Index(index) => self.index(index),
            Element::ForeignKey { constraint, index, columns, key } => {
                self.constraint(constraint.as_ref());
                self.put("FOREIGN KEY ");
                if let Some(index) = index {
                    self.quoted(index.as_str());
                    self.put(" ");
                }
                self.parenthesised(columns, Self::name);
                self.put(" ");
                self.references(key);
            }
            Element::Check { constraint, expr } => {
                self.constraint(constraint.as_ref());
                self.wrapped("CHECK ", |printer| printer.expr(expr));
            }
        }
    }

    fn index(&mut self, index: &Index) {
        self.constraint(index.constraint.as_ref());
        self.put(match index.kind {
            IndexKind::Primary => "PRIMARY KEY",
            IndexKind::Unique => "UNIQUE KEY",
            IndexKind::Plain => "KEY",
            IndexKind::Fulltext => "FULLTEXT KEY",
            IndexKind::Spatial => "SPATIAL KEY",
        });
        if let Some(name) = &index.name {
            self.put(" ");
            self.quoted(name.as_str());
        }
        if let Some(using) = index.using {
            self.put(" USING ");
            self.put(using);
        }
        self.put(" ");
        self.parenthesised(&index.columns, |printer, column| {
            printer.name(&column.name);
            if let Some(prefix) = column.prefix {
                printer.put(&format!("({prefix})"));
            }
            match column.descending {
                None => {}
                Some(true) => printer.put(" DESC"),
                Some(false) => printer.put(" ASC"),
            }
        });
        for option in &index.options {
            match option {
                IndexOption::Using(using) => {
                    self.put(" USING ");
                    self.put(using);
                }
                IndexOption::Comment(text) => {
                    self.put(" COMMENT ");
                    self.string(text);
                }
                IndexOption::KeyBlockSize(kilobytes) => {
                    self.put(&format!(" KEY_BLOCK_SIZE = {kilobytes}"));
                }
            }
        }
    }

    fn references(&mut self, key: &ForeignKey) {
        self.put("REFERENCES ");
        self.table(&key.table);
        if !key.columns.is_empty() {
            self.put(" ");
            self.parenthesised(&key.columns, Self::name);
        }
        for (event, action) in [(" ON DELETE", key.on_delete), (" ON UPDATE", key.on_update)] {
            if let Some(action) = action {
                self.put(event);
                self.put(match action {
                    ReferentialAction::Restrict => " RESTRICT",
                    ReferentialAction::Cascade => " CASCADE",
                    ReferentialAction::SetNull => " SET NULL",
                    ReferentialAction::NoAction => " NO ACTION",
                    ReferentialAction::SetDefault => " SET DEFAULT",
                });
            }
        }
    }

    fn table_option(&mut self, option: &TableOption) {
        match option {
            TableOption::InnoDb => self.put("ENGINE = InnoDB"),
            TableOption::Charset(charset) => {
                self.put("DEFAULT CHARACTER SET = ");
                self.put(charset.as_str());
            }
            TableOption::Collate(collation) => {
                self.put("COLLATE = ");
                self.put(collation.as_str());
            }
            TableOption::Comment(text) => {
                self.put("COMMENT = ");
                self.string(text);
            }
            TableOption::Plain(name, value) => {
                self.put(name);
                self.put(" = ");
                self.put(value);
            }
        }
    }
}
