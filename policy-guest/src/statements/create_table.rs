//! `CREATE TABLE IF NOT EXISTS`.

use sqlparser::ast::{
    CheckConstraint, ColumnDef as AstColumn, ColumnOption, ColumnOptionDef,
    CreateTable as AstCreate, CreateTableLikeKind, CreateTableOptions, Expr as Ast, GeneratedAs,
    GeneratedExpressionMode, HiveDistributionStyle, Ident, PrimaryKeyConstraint, UnaryOperator,
    UniqueConstraint, Value,
};
use sqlparser::tokenizer::Token;

use crate::context::Context;
use crate::convert::refuse_present;
use crate::decision::{Access, Span};
use crate::diagnostics::{Finding, code};
use crate::functions::NOW_SYNONYMS;
use crate::lexer::span_of;
use crate::model::{Attribute, ColumnDef, CreateTable, Default, Expr, Literal, TableBody};
use crate::names::{WideName, object_span};

impl Context<'_> {
    #[expect(clippy::too_many_lines, reason = "one line per clause of the parser's CREATE TABLE")]
    pub(super) fn create_table(&mut self, create: AstCreate) -> Option<CreateTable> {
        let AstCreate {
            or_replace,
            temporary,
            unlogged,
            external,
            dynamic,
            global,
            if_not_exists,
            transient,
            volatile,
            iceberg,
            snapshot,
            name,
            columns,
            constraints,
            hive_distribution,
            hive_formats,
            table_options,
            file_format,
            location,
            query,
            sqlite_table_options,
            like,
            clone,
            version,
            comment,
            on_commit,
            on_cluster,
            primary_key,
            order_by,
            partition_by,
            cluster_by,
            clustered_by,
            inherits,
            partition_of,
            for_values,
            copy_grants,
            enable_schema_evolution,
            change_tracking,
            data_retention_time_in_days,
            max_data_extension_time_in_days,
            default_ddl_collation,
            with_aggregation_policy,
            with_row_access_policy,
            with_storage_lifecycle_policy,
            with_tags,
            external_volume,
            with_connection,
            base_location,
            catalog,
            catalog_sync,
            storage_serialization_policy,
            target_lag,
            warehouse,
            refresh_mode,
            initialize,
            require_user,
            diststyle,
            distkey,
            sortkey,
            backup,
            multiset,
            fallback,
            with_data,
        } = create;
        let span = object_span(&name);
        let plain = refuse_present!(self, &code::TABLE_KIND, span,
            query => "CREATE TABLE … SELECT: create the table, then INSERT IGNORE … SELECT",
            sqlite_table_options.leading_comma => "comma before the table options",
            sqlite_table_options.options => "option of another database",
            unlogged => "UNLOGGED", external => "EXTERNAL", dynamic => "DYNAMIC",
            global => "GLOBAL", transient => "TRANSIENT", volatile => "VOLATILE",
            iceberg => "ICEBERG", snapshot => "SNAPSHOT", hive_formats => "STORED AS",
            !matches!(hive_distribution, HiveDistributionStyle::NONE) => "distribution clause",
            file_format => "FORMAT", location => "LOCATION", clone => "CLONE",
            version => "versioned table", comment => "COMMENT before the options",
            on_commit => "ON COMMIT", on_cluster => "ON CLUSTER", primary_key => "PRIMARY KEY clause",
            order_by => "ORDER BY", partition_by => "PARTITION BY", cluster_by => "CLUSTER BY",
            clustered_by => "CLUSTERED BY", inherits => "INHERITS", partition_of => "PARTITION OF",
            for_values => "FOR VALUES", copy_grants => "COPY GRANTS",
            enable_schema_evolution => "ENABLE_SCHEMA_EVOLUTION", change_tracking => "CHANGE_TRACKING",
            data_retention_time_in_days => "retention", max_data_extension_time_in_days => "retention",
            default_ddl_collation => "DEFAULT_DDL_COLLATION", with_aggregation_policy => "policy",
            with_row_access_policy => "policy", with_storage_lifecycle_policy => "policy",
            with_tags => "TAG", external_volume => "EXTERNAL_VOLUME", with_connection => "CONNECTION",
            base_location => "BASE_LOCATION", catalog => "CATALOG", catalog_sync => "CATALOG_SYNC",
            storage_serialization_policy => "policy", target_lag => "TARGET_LAG",
            warehouse => "WAREHOUSE", refresh_mode => "REFRESH_MODE", initialize => "INITIALIZE",
            require_user => "REQUIRE USER", diststyle => "DISTSTYLE", distkey => "DISTKEY",
            sortkey => "SORTKEY", backup => "BACKUP", multiset => "MULTISET", fallback => "FALLBACK",
            with_data => "WITH DATA",
        );
        let table = self.table(name, Access::Create);
        let body = match like {
            Some(like) => self.like(like, &columns, &table_options, span),
            None if columns.is_empty() && plain.is_some() => self.refuse(
                Finding::new(&code::TABLE_KIND).message("table without columns").near(span),
            ),
            None => {
                let columns = self.every(columns, Self::column_def);
                let elements = self.every(constraints, Self::element);
                let options = self.table_options(table_options, span);
                match (columns, elements, options) {
                    (Some(columns), Some(elements), Some(options)) => {
                        Some(TableBody::Defined { columns, elements, options })
                    }
                    _ => None,
                }
            }
        };
        plain?;
        // `head` has reported these.
        let repeatable = if_not_exists && !or_replace && !temporary;
        let (table, body) = (table?, body?);
        repeatable.then_some(CreateTable { table, body })
    }

    fn like(
        &mut self,
        like: CreateTableLikeKind,
        columns: &[AstColumn],
        options: &CreateTableOptions,
        span: Option<Span>,
    ) -> Option<TableBody> {
        let (CreateTableLikeKind::Parenthesized(like) | CreateTableLikeKind::Plain(like)) = like;
        refuse_present!(self, &code::TABLE_KIND, span,
            like.defaults => "LIKE with INCLUDING or EXCLUDING",
            !columns.is_empty() => "LIKE with columns",
            !matches!(options, CreateTableOptions::None) => "LIKE with options",
        )?;
        self.table(like.name, Access::Read).map(TableBody::Like)
    }

    fn column_def(&mut self, column: AstColumn) -> Option<ColumnDef> {
        let AstColumn { name, data_type, options } = column;
        let span = span_of(name.span);
        let name = self.name(name);
        let data_type = self.column_type(data_type);
        let attributes = self.every(options, |context, option| context.attribute(option, span));
        Some(ColumnDef { name: name?, data_type: data_type?, attributes: attributes? })
    }

    fn attribute(&mut self, option: ColumnOptionDef, span: Option<Span>) -> Option<Attribute> {
        let ColumnOptionDef { name, option } = option;
        match option {
            ColumnOption::Check(check) => self.column_check(name, check, span),
            _ if name.is_some() => self.refuse(
                Finding::new(&code::INDEX_OPTION)
                    .message("named constraint on a column")
                    .near(span),
            ),
            ColumnOption::Null => Some(Attribute::Null),
            ColumnOption::NotNull => Some(Attribute::NotNull),
            ColumnOption::Default(expr) => self.default_value(expr, span).map(Attribute::Default),
            ColumnOption::OnUpdate(expr) => match now(&expr) {
                Some(digits) => Some(Attribute::OnUpdateNow(digits)),
                None => self.refuse_code(&code::DEFAULT, span),
            },
            ColumnOption::PrimaryKey(key) => self.column_primary_key(key, span),
            ColumnOption::Unique(key) => self.column_unique(key, span),
            ColumnOption::ForeignKey(key) => {
                self.foreign_key(key).map(|(_, _, _, key)| Attribute::References(key))
            }
            ColumnOption::Comment(handle) => self.single_string(&handle).map(Attribute::Comment),
            ColumnOption::Collation(name) => self.collation(name).map(Attribute::Collate),
            ColumnOption::DialectSpecific(tokens) => self.dialect_option(&tokens, span),
            ColumnOption::Generated {
                generated_as: GeneratedAs::Always | GeneratedAs::ExpStored,
                sequence_options: None,
                generation_expr: Some(expr),
                generation_expr_mode,
                generated_keyword: _,
            } => {
                let expr = self.pure(expr, span)?;
                let stored = generation_expr_mode
                    .map(|mode| matches!(mode, GeneratedExpressionMode::Stored));
                Some(Attribute::Generated { expr, stored })
            }
            ColumnOption::Materialized(_)
            | ColumnOption::Ephemeral(_)
            | ColumnOption::Alias(_)
            | ColumnOption::CharacterSet(_)
            | ColumnOption::Generated { .. }
            | ColumnOption::Options(_)
            | ColumnOption::GenericOptions(_)
            | ColumnOption::Identity(_)
            | ColumnOption::OnConflict(_)
            | ColumnOption::Policy(_)
            | ColumnOption::Tags(_)
            | ColumnOption::Srid(_)
            | ColumnOption::Invisible => self.refuse_code(&code::COLUMN_OPTION, span),
        }
    }

    fn dialect_option(&mut self, tokens: &[Token], span: Option<Span>) -> Option<Attribute> {
        match tokens {
            [Token::Word(word)] if word.value == "AUTO_INCREMENT" => Some(Attribute::AutoIncrement),
            [Token::Word(word)] if word.value == "SERIAL" => Some(Attribute::SerialDefault),
            _ => self.refuse_code(&code::COLUMN_OPTION, span),
        }
    }

    fn column_primary_key(
        &mut self,
        key: PrimaryKeyConstraint,
        span: Option<Span>,
    ) -> Option<Attribute> {
        let PrimaryKeyConstraint {
            name,
            index_name,
            index_type,
            columns,
            include,
            index_options,
            characteristics,
        } = key;
        refuse_present!(self, &code::INDEX_OPTION, span,
            name => "named constraint on a column",
            index_name => "index name on a column",
            index_type => "USING on a column",
            columns => "columns on a column's key",
            include => "INCLUDE",
            index_options => "index option on a column",
            characteristics => "constraint characteristics",
        )?;
        Some(Attribute::PrimaryKey)
    }

    fn column_unique(&mut self, key: UniqueConstraint, span: Option<Span>) -> Option<Attribute> {
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
        refuse_present!(self, &code::INDEX_OPTION, span,
            name => "named constraint on a column",
            index_name => "index name on a column",
            index_type => "USING on a column",
            columns => "columns on a column's key",
            include => "INCLUDE",
            index_options => "index option on a column",
            characteristics => "constraint characteristics",
            !matches!(nulls_distinct, sqlparser::ast::NullsDistinctOption::None) => "NULLS DISTINCT",
        )?;
        Some(Attribute::Unique)
    }

    fn column_check(
        &mut self,
        name: Option<Ident>,
        check: CheckConstraint,
        span: Option<Span>,
    ) -> Option<Attribute> {
        let (_, expr) = self.check(check, span)?;
        let name = self.maybe(name, Self::wide_name)?;
        Some(Attribute::Check(name, expr))
    }

    /// CHECK's name and expression.
    pub(super) fn check(
        &mut self,
        check: CheckConstraint,
        span: Option<Span>,
    ) -> Option<(Option<WideName>, Expr)> {
        let CheckConstraint { name, expr, no_inherit, enforced } = check;
        let plain = refuse_present!(self, &code::INDEX_OPTION, span,
            no_inherit => "NO INHERIT",
            enforced => "ENFORCED, which only MySQL 8.0.16 and later have",
        );
        let name = self.maybe(name, Self::wide_name);
        let expr = self.pure(*expr, span);
        plain?;
        Some((name?, expr?))
    }

    /// An expression of a definition: it may read neither the clock nor other rows.
    fn pure(&mut self, expr: Ast, span: Option<Span>) -> Option<Expr> {
        let reported = self.findings.len();
        let expr = self.expr(expr)?;
        let reads_clock = self.findings.len() > reported;
        if reads_clock || crate::reads::reads_table(&expr) {
            self.findings.truncate(reported);
            return self.refuse_code(&code::DEFAULT, span);
        }
        Some(expr)
    }

    fn default_value(&mut self, expr: Ast, span: Option<Span>) -> Option<Default> {
        if let Some(digits) = now(&expr) {
            return Some(Default::Now(digits));
        }
        match expr {
            Ast::Nested(inner) => self.pure(*inner, span).map(Default::Expr),
            Ast::Value(value) => self.literal(value).map(Default::Literal),
            Ast::UnaryOp { op: op @ (UnaryOperator::Minus | UnaryOperator::Plus), expr } => {
                let bare = !matches!(*expr, Ast::Nested(_));
                match self.expr(*expr)? {
                    Expr::Literal(Literal::Number(digits)) if bare => {
                        Some(Default::Signed(matches!(op, UnaryOperator::Minus), digits))
                    }
                    _ => self.refuse_code(&code::DEFAULT, span),
                }
            }
            expr @ (Ast::Prefixed { .. } | Ast::TypedString(_)) => match self.expr(expr)? {
                Expr::Literal(literal) => Some(Default::Literal(literal)),
                _ => self.refuse_code(&code::DEFAULT, span),
            },
            other => {
                // Its own problems first, then that it may not stand here.
                self.expr(other);
                self.refuse_code(&code::DEFAULT, span)
            }
        }
    }
}

/// `CURRENT_TIMESTAMP[(n)]` and its synonyms: the digits of the fraction, if given.
#[expect(clippy::option_option, reason = "outer: is it the clock; inner: are digits given")]
fn now(expr: &Ast) -> Option<Option<u32>> {
    let is_now = |ident: &Ident| {
        ident.quote_style.is_none()
            && NOW_SYNONYMS.iter().any(|name| name.eq_ignore_ascii_case(&ident.value))
    };
    match expr {
        // NOW alone is a column.
        Ast::Identifier(ident) if is_now(ident) && !ident.value.eq_ignore_ascii_case("NOW") => {
            Some(None)
        }
        Ast::Function(function) => {
            let [sqlparser::ast::ObjectNamePart::Identifier(ident)] = function.name.0.as_slice()
            else {
                return None;
            };
            let sqlparser::ast::FunctionArguments::List(list) = &function.args else {
                return None;
            };
            let plain = function.over.is_none()
                && list.clauses.is_empty()
                && list.duplicate_treatment.is_none();
            if !is_now(ident) || !plain {
                return None;
            }
            match list.args.as_slice() {
                [] => Some(None),
                [
                    sqlparser::ast::FunctionArg::Unnamed(sqlparser::ast::FunctionArgExpr::Expr(
                        Ast::Value(value),
                    )),
                ] => match &value.value {
                    Value::Number(digits, _) => digits.parse().ok().map(Some),
                    _ => None,
                },
                _ => None,
            }
        }
        _ => None,
    }
}
