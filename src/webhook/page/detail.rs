//! What a scraper asks `/metrics` to show singly: `/metrics?detail=pods`.
//!
//! Reads the query only; what is shown without it is decided elsewhere.

/// What a scraper wants series of.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AskedDetail {
    /// Of nodes, and of nothing on them.
    Nodes,
    /// Of each card and device.
    Cards,
    /// Of each card that a pod holds a share of, too.
    Pods,
}

/// The parameter of the query, as the settings of Prometheus name it under `params`.
const DETAIL: &str = "detail";

impl AskedDetail {
    /// What the query of a URL asks for; `None`: nothing. Other parameters are passed over.
    pub(in crate::webhook) fn of(query: &str) -> Result<Option<Self>, &'static str> {
        let mut values = form_urlencoded::parse(query.as_bytes()).filter(|(key, _)| key == DETAIL);
        match (values.next().map(|(_, value)| value).as_deref(), values.next()) {
            (None, _) => Ok(None),
            (Some("nodes"), None) => Ok(Some(Self::Nodes)),
            (Some("cards"), None) => Ok(Some(Self::Cards)),
            (Some("pods"), None) => Ok(Some(Self::Pods)),
            _ => Err("the parameter `detail` must be one of nodes, cards, pods"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::AskedDetail;

    #[test]
    fn a_query_asks_for_one_detail_or_for_none() {
        for (query, asked) in [
            ("", None),
            ("format=x", None),
            ("detail=nodes", Some(AskedDetail::Nodes)),
            ("a=b&detail=cards", Some(AskedDetail::Cards)),
            ("detail=p%6Fds", Some(AskedDetail::Pods)),
        ] {
            assert_eq!(AskedDetail::of(query), Ok(asked), "{query}");
        }
        for query in ["detail=", "detail=all", "detail=pods&detail=cards"] {
            assert!(AskedDetail::of(query).is_err(), "{query}");
        }
    }
}
