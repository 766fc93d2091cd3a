//! What a table has besides columns: indexes, foreign keys and checks.

use sqlparser::ast::{
    Expr as Ast, ForeignKeyConstraint, FunctionArg, FunctionArgExpr, FunctionArguments, Ident,
    IndexColumn as AstIndexColumn, IndexConstraint, IndexOption as AstIndexOption, IndexType,
    NullsDistinctOption, ObjectNamePart, OrderByExpr, OrderByOptions, OrderBySort,
    PrimaryKeyConstraint, ReferentialAction as AstAction, TableConstraint, UniqueConstraint, Value,
};

use crate::context::Context;
use crate::convert::refuse_present;
use crate::decision::{Access, Span};
use crate::diagnostics::{Finding, code};
use crate::lexer::span_of;
use crate::model::{
    Element, ForeignKey, Index, IndexColumn, IndexKind, IndexOption, ReferentialAction,
};
use crate::names::{Name, WideName, object_span};
use crate::rewrite::{FULLTEXT, KEY_BLOCK_SIZE, SPATIAL};

/// The names and columns a foreign key has as a table element, and what it points at.
type ForeignKeyParts = (Option<WideName>, Option<WideName>, Vec<Name>, ForeignKey);

impl Context<'_> {
    pub(super) fn element(&mut self, constraint: TableConstraint) -> Option<Element> {
        match constraint {
            TableConstraint::PrimaryKey(key) => self.primary_key(key).map(Element::Index),
            TableConstraint::Unique(key) => self.unique(key).map(Element::Index),
            TableConstraint::Index(index) => self.index(index).map(Element::Index),
            TableConstraint::ForeignKey(key) => {
                let (constraint, index, columns, key) = self.foreign_key(key)?;
                Some(Element::ForeignKey { constraint, index, columns, key })
            }
            TableConstraint::Check(check) => {
                let (constraint, expr) = self.check(check, None)?;
                Some(Element::Check { constraint, expr })
            }
            // See rewrite: these travel as plain indexes.
            TableConstraint::FulltextOrSpatial(_)
            | TableConstraint::PrimaryKeyUsingIndex(_)
            | TableConstraint::UniqueUsingIndex(_)
            | TableConstraint::Exclude(_) => self.refuse_code(&code::INDEX_OPTION, None),
        }
    }

    fn primary_key(&mut self, key: PrimaryKeyConstraint) -> Option<Index> {
        let PrimaryKeyConstraint {
            name,
            index_name,
            index_type,
            columns,
            include,
            index_options,
            characteristics,
        } = key;
        let span = columns.first().and_then(index_column_span);
        let plain = refuse_present!(self, &code::INDEX_OPTION, span,
            include => "INCLUDE",
            characteristics => "constraint characteristics",
        );
        let index =
            self.assemble(IndexKind::Primary, name, index_name, index_type, columns, index_options);
        plain?;
        index
    }

    fn unique(&mut self, key: UniqueConstraint) -> Option<Index> {
        let UniqueConstraint {
            name,
            index_name,
            index_type_display: _,
            index_type,
            columns,
            include,
            index_options,
            characteristics,
            nulls_distinct,
        } = key;
        let span = columns.first().and_then(index_column_span);
        let plain = refuse_present!(self, &code::INDEX_OPTION, span,
            include => "INCLUDE",
            characteristics => "constraint characteristics",
            !matches!(nulls_distinct, NullsDistinctOption::None) => "NULLS DISTINCT",
        );
        let index =
            self.assemble(IndexKind::Unique, name, index_name, index_type, columns, index_options);
        plain?;
        index
    }

    fn index(&mut self, index: IndexConstraint) -> Option<Index> {
        let IndexConstraint { display_as_key: _, name, index_type, columns, mut index_options } =
            index;
        let kind = match index_options.first() {
            Some(AstIndexOption::Comment(handle)) if handle == FULLTEXT => IndexKind::Fulltext,
            Some(AstIndexOption::Comment(handle)) if handle == SPATIAL => IndexKind::Spatial,
            _ => IndexKind::Plain,
        };
        if kind != IndexKind::Plain {
            index_options.remove(0);
            self.no_algorithm(index_type.as_ref(), &index_options, columns.first())?;
        }
        self.assemble(kind, None, name, index_type, columns, index_options)
    }

    /// Full-text and spatial indexes have one algorithm (manual: "CREATE INDEX Statement").
    fn no_algorithm(
        &mut self,
        using: Option<&IndexType>,
        options: &[AstIndexOption],
        column: Option<&AstIndexColumn>,
    ) -> Option<()> {
        let named = options.iter().any(|option| matches!(option, AstIndexOption::Using(_)));
        if using.is_none() && !named {
            return Some(());
        }
        let finding = Finding::new(&code::INDEX_OPTION)
            .message("USING of a full-text or spatial index")
            .near(column.and_then(index_column_span));
        self.refuse(finding)
    }

    fn assemble(
        &mut self,
        kind: IndexKind,
        constraint: Option<Ident>,
        name: Option<Ident>,
        using: Option<IndexType>,
        columns: Vec<AstIndexColumn>,
        options: Vec<AstIndexOption>,
    ) -> Option<Index> {
        let span = columns.first().and_then(index_column_span);
        let constraint = self.maybe(constraint, Self::wide_name);
        let name = self.maybe(name, Self::wide_name);
        let using = self.maybe(using, |context, using| context.index_type(&using, span));
        let columns = self.every(columns, Self::index_column);
        let options = self.every(options, |context, option| context.index_option(option, span));
        Some(Index {
            kind,
            constraint: constraint?,
            name: name?,
            using: using?,
            columns: columns?,
            options: options?,
        })
    }

    fn index_type(&mut self, using: &IndexType, span: Option<Span>) -> Option<&'static str> {
        match using {
            IndexType::BTree => Some("BTREE"),
            IndexType::Hash => Some("HASH"),
            _ => self.refuse_code(&code::INDEX_OPTION, span),
        }
    }

    fn index_option(&mut self, option: AstIndexOption, span: Option<Span>) -> Option<IndexOption> {
        match option {
            AstIndexOption::Using(using) => self.index_type(&using, span).map(IndexOption::Using),
            // See rewrite: KEY_BLOCK_SIZE travels as a comment that no text can spell.
            AstIndexOption::Comment(handle) => match handle.strip_prefix(KEY_BLOCK_SIZE) {
                Some(kilobytes) => match kilobytes.parse() {
                    Ok(kilobytes) => Some(IndexOption::KeyBlockSize(kilobytes)),
                    Err(_) => self.refuse_code(&code::INDEX_OPTION, span),
                },
                None => self.single_string(&handle).map(IndexOption::Comment),
            },
        }
    }

    /// `a`, `a(10)` or `a DESC`; the prefix length reads as a call.
    fn index_column(&mut self, column: AstIndexColumn) -> Option<IndexColumn> {
        let span = index_column_span(&column);
        let AstIndexColumn { column, operator_class } = column;
        let OrderByExpr { expr, options: OrderByOptions { sort, nulls_first }, with_fill } = column;
        refuse_present!(self, &code::INDEX_OPTION, span,
            operator_class => "operator class",
            nulls_first => "NULLS FIRST or LAST",
            with_fill => "WITH FILL",
        )?;
        let descending = match sort {
            None => None,
            Some(OrderBySort::Asc) => Some(false),
            Some(OrderBySort::Desc) => Some(true),
            Some(OrderBySort::Using(_)) => return self.refuse_code(&code::INDEX_OPTION, span),
        };
        match expr {
            Ast::Identifier(ident) => {
                let name = self.name(ident)?;
                Some(IndexColumn { name, prefix: None, descending })
            }
            Ast::Function(call) => match prefix(call) {
                Some((ident, prefix)) => {
                    let name = self.name(ident)?;
                    Some(IndexColumn { name, prefix: Some(prefix), descending })
                }
                None => self.refuse_code(&code::INDEX_OPTION, span),
            },
            _ => self.refuse(
                Finding::new(&code::INDEX_OPTION)
                    .message("index over something other than columns")
                    .near(span),
            ),
        }
    }

    /// A foreign key, of a table or of a column.
    pub(super) fn foreign_key(&mut self, key: ForeignKeyConstraint) -> Option<ForeignKeyParts> {
        let ForeignKeyConstraint {
            name,
            index_name,
            columns,
            foreign_table,
            referred_columns,
            on_delete,
            on_update,
            match_kind,
            characteristics,
        } = key;
        let span = object_span(&foreign_table);
        let plain = refuse_present!(self, &code::INDEX_OPTION, span,
            match_kind => "MATCH, which InnoDB ignores together with ON DELETE and ON UPDATE",
            characteristics => "constraint characteristics",
        );
        let constraint = self.maybe(name, Self::wide_name);
        let index = self.maybe(index_name, Self::wide_name);
        let columns = self.every(columns, Self::name);
        let table = self.table(foreign_table, Access::Read);
        let referred = self.every(referred_columns, Self::name);
        plain?;
        let key = ForeignKey {
            table: table?,
            columns: referred?,
            on_delete: on_delete.map(action),
            on_update: on_update.map(action),
        };
        Some((constraint?, index?, columns?, key))
    }
}

const fn action(action: AstAction) -> ReferentialAction {
    match action {
        AstAction::Restrict => ReferentialAction::Restrict,
        AstAction::Cascade => ReferentialAction::Cascade,
        AstAction::SetNull => ReferentialAction::SetNull,
        AstAction::NoAction => ReferentialAction::NoAction,
        AstAction::SetDefault => ReferentialAction::SetDefault,
    }
}

fn index_column_span(column: &AstIndexColumn) -> Option<Span> {
    match &column.column.expr {
        Ast::Identifier(ident) => span_of(ident.span),
        Ast::Function(call) => object_span(&call.name),
        _ => None,
    }
}

/// `name(length)`, read as a call of one number.
fn prefix(call: sqlparser::ast::Function) -> Option<(Ident, u32)> {
    let FunctionArguments::List(list) = call.args else {
        return None;
    };
    let [FunctionArg::Unnamed(FunctionArgExpr::Expr(Ast::Value(value)))] = list.args.as_slice()
    else {
        return None;
    };
    let Value::Number(digits, _) = &value.value else {
        return None;
    };
    let mut parts = call.name.0.into_iter();
    let (Some(ObjectNamePart::Identifier(ident)), None) = (parts.next(), parts.next()) else {
        return None;
    };
    let plain = call.over.is_none()
        && call.filter.is_none()
        && call.null_treatment.is_none()
        && call.within_group.is_empty()
        && matches!(call.parameters, FunctionArguments::None)
        && list.clauses.is_empty()
        && list.duplicate_treatment.is_none();
    plain.then_some((ident, digits.parse().ok()?))
}
