//! Paging through lists that grow while they are read.
//!
//! Items have growing numbers and are shown youngest first. A page is named by the number it lies
//! below or above, never by a count of items, so what is added shifts nothing: going back and forth,
//! no item is seen twice and none is skipped.

/// Where a page lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// The youngest items there are.
    #[default]
    Newest,
    /// The items next below this number: older ones.
    Below(u64),
    /// The items next above this number: younger ones.
    Above(u64),
}

/// A page of a list, the youngest item first.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Slice<T> {
    /// The items.
    pub items: Vec<T>,
    /// Above which number the next younger page lies; none where nothing is known to be younger.
    pub newer: Option<u64>,
    /// Below which number the next older page lies; none where there is none.
    pub older: Option<u64>,
}

impl From<Option<u64>> for Place {
    /// Below a number, or the newest.
    fn from(before: Option<u64>) -> Self {
        before.map_or(Self::Newest, Self::Below)
    }
}

impl Place {
    /// The condition on the column with the numbers, if there is one.
    pub(crate) fn condition(self, column: &str) -> Option<String> {
        match self {
            Self::Newest => None,
            Self::Below(number) => Some(format!("{column} < {number}")),
            Self::Above(number) => Some(format!("{column} > {number}")),
        }
    }

    /// The order in which a server finds the page's items, nearest to its place first.
    pub(crate) fn order(self) -> &'static str {
        match self {
            Self::Newest | Self::Below(_) => "DESC",
            Self::Above(_) => "ASC",
        }
    }
}

impl<T> Slice<T> {
    /// The page of so many items, of what was found at its place: in [`Place::order`], and one more
    /// than the page has when there is more in that direction.
    ///
    /// # Errors
    ///
    /// An item's number cannot be read.
    pub(crate) fn cut<E>(
        mut found: Vec<T>,
        place: Place,
        size: u32,
        number: impl Fn(&T) -> Result<u64, E>,
    ) -> Result<Self, E> {
        let wanted = usize::try_from(size).unwrap_or(usize::MAX);
        let is_more = found.len() > wanted;
        found.truncate(wanted);
        if let Place::Above(_) = place {
            found.reverse();
        }
        let youngest = found.first().map(&number).transpose()?;
        let oldest = found.last().map(&number).transpose()?;
        let (newer, older) = match place {
            Place::Newest => (None, oldest.filter(|_| is_more)),
            // What it lies below is younger; without an item, from there on.
            Place::Below(bound) => (
                Some(youngest.unwrap_or_else(|| bound.saturating_sub(1))),
                oldest.filter(|_| is_more),
            ),
            Place::Above(bound) => (
                youngest.filter(|_| is_more),
                Some(oldest.unwrap_or_else(|| bound.saturating_add(1))),
            ),
        };
        Ok(Self { items: found, newer, older })
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;

    /// What a server finds among `numbers`, which are in growing order.
    fn page(numbers: &[u64], place: Place, size: u32) -> Slice<u64> {
        let of_place = |number: &&u64| match place {
            Place::Newest => true,
            Place::Below(bound) => **number < bound,
            Place::Above(bound) => **number > bound,
        };
        let mut found: Vec<u64> = numbers.iter().filter(of_place).copied().collect();
        if place.order() == "DESC" {
            found.reverse();
        }
        found.truncate(size as usize + 1);
        Slice::cut(found, place, size, |number| Ok::<_, Infallible>(*number)).unwrap()
    }

    #[test]
    fn down_and_up_again_gives_the_same_pages_while_items_are_added() {
        let mut numbers: Vec<u64> = (1..=11).collect();
        let mut down = vec![page(&numbers, Place::Newest, 4)];
        while let Some(older) = down.last().unwrap().older {
            numbers.push(numbers.len() as u64 + 1);
            down.push(page(&numbers, Place::Below(older), 4));
        }
        let items: Vec<Vec<u64>> = down.iter().map(|page| page.items.clone()).collect();
        assert_eq!(items, [vec![11, 10, 9, 8], vec![7, 6, 5, 4], vec![3, 2, 1]]);
        let mut up = vec![down.last().unwrap().clone()];
        while let Some(newer) = up.last().unwrap().newer {
            up.push(page(&numbers, Place::Above(newer), 4));
        }
        let items: Vec<Vec<u64>> = up.iter().map(|page| page.items.clone()).collect();
        assert_eq!(items, [vec![3, 2, 1], vec![7, 6, 5, 4], vec![11, 10, 9, 8], vec![13, 12]]);
        assert_eq!(up.last().unwrap().older, Some(12), "and down again");
    }

    #[test]
    fn an_empty_page_leads_back_to_what_it_lies_beside() {
        let below = page(&[5, 6], Place::Below(5), 4);
        assert_eq!((below.newer, below.older), (Some(4), None));
        let above = page(&[5, 6], Place::Above(6), 4);
        assert_eq!((above.newer, above.older), (None, Some(7)));
        let none = page(&[], Place::Newest, 4);
        assert_eq!((none.newer, none.older), (None, None));
    }

    #[test]
    fn a_page_is_a_condition_and_an_order() {
        assert_eq!(Place::Newest.condition("r.id"), None);
        assert_eq!(Place::from(Some(7)).condition("r.id").as_deref(), Some("r.id < 7"));
        assert_eq!(Place::Above(7).condition("id").as_deref(), Some("id > 7"));
        assert_eq!((Place::from(None).order(), Place::Above(7).order()), ("DESC", "ASC"));
    }
}
