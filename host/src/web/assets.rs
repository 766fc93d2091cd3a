//! The page's own files: compiled in, named by what is in them, so that a browser may keep them.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::frame::wrong;
use crate::digest::Digest;

const STYLE: &str = include_str!("../../assets/page.css");
const ICON: &str = include_str!("../../assets/icon.svg");

static STYLE_PATH: LazyLock<String> = LazyLock::new(|| path(STYLE, "css"));
static ICON_PATH: LazyLock<String> = LazyLock::new(|| path(ICON, "svg"));

/// Where the style sheet is.
pub(super) fn style_path() -> &'static str {
    &STYLE_PATH
}

/// Where the icon is.
pub(super) fn icon_path() -> &'static str {
    &ICON_PATH
}

fn path(content: &str, kind: &str) -> String {
    let digest = Digest::of(content).to_string();
    let hash: String = digest.trim_start_matches("sha256:").chars().take(16).collect();
    format!("/assets/{hash}.{kind}")
}

/// One of them. Another name is another version's, or nobody's.
pub(super) async fn asset(name: Result<Path<String>, PathRejection>) -> Response {
    let wanted = name.map(|Path(name)| format!("/assets/{name}")).unwrap_or_default();
    let (content, kind) = if wanted == style_path() {
        (STYLE, "text/css; charset=utf-8")
    } else if wanted == icon_path() {
        (ICON, "image/svg+xml")
    } else {
        return wrong(StatusCode::NOT_FOUND, "Not found", "There is no such file.");
    };
    let keep = HeaderValue::from_static("public, max-age=31536000, immutable");
    let kind = HeaderValue::from_static(kind);
    ([(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, keep)], content).into_response()
}
