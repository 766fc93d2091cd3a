//! The tokens of a `SHOW GRANTS` line: what a server prints, not what a person may write.

/// One token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A bare word.
    Word(String),
    /// A quoted name or text, without its quotes.
    Quoted(String),
    /// Anything else, one character at a time.
    Symbol(char),
}

impl Token {
    /// The word in upper case, when it is one.
    pub(super) fn word(&self) -> Option<String> {
        match self {
            Self::Word(word) => Some(word.to_ascii_uppercase()),
            Self::Quoted(_) | Self::Symbol(_) => None,
        }
    }

    /// Whether it is this word, unquoted.
    pub(super) fn is_word(&self, word: &str) -> bool {
        matches!(self, Self::Word(own) if own.eq_ignore_ascii_case(word))
    }
}

/// Cuts a line into tokens; none when a quote does not end.
pub(super) fn tokens(line: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut chars = line.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '`' | '\'' | '"' => {
                let mut text = String::new();
                loop {
                    let next = chars.next()?;
                    if next != char {
                        text.push(next);
                    } else if chars.next_if_eq(&char).is_some() {
                        // A doubled quote is the quote itself.
                        text.push(char);
                    } else {
                        break;
                    }
                }
                tokens.push(Token::Quoted(text));
            }
            _ if is_word(char) => {
                let mut word = String::from(char);
                while let Some(next) = chars.next_if(|next| is_word(*next)) {
                    word.push(next);
                }
                tokens.push(Token::Word(word));
            }
            _ if char.is_whitespace() => {}
            _ => tokens.push(Token::Symbol(char)),
        }
    }
    Some(tokens)
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_' || char == '$'
}
