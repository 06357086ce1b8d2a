//! The models that the user can choose, with what is known of them.

use std::time::Duration;

use futures_util::future::join_all;

use super::choose::{Providers, listens};
use super::listing::Listed;
use super::models::ModelInfo;
use protocol::error::Error;

/// A model that the user can choose.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelOffer {
    /// The Provider's name.
    pub provider: String,
    /// The model's name there.
    pub model: String,
    /// Window, price and efforts, as far as they are known.
    pub info: ModelInfo,
}

/// The models of all Providers.
#[derive(Debug, Clone, Default)]
pub struct Offered {
    /// Models, by Provider.
    pub models: Vec<ModelOffer>,
    /// Providers that did not list their models, and why.
    pub silent: Vec<(String, Error)>,
}

impl Providers {
    /// Asks every Provider for its models, all at the same time.
    pub async fn offered(&self, within: Duration) -> Offered {
        let known = self.known.iter().map(|it| (it, true));
        let all = known.chain(self.usual.iter().map(|it| (it, false)));
        let asking = all.map(|((name, definition), is_known)| async move {
            let models = match (&definition.endpoint, &definition.model) {
                (Some(endpoint), _) if !is_known && listens(endpoint).await.is_none() => Ok(Vec::new()),
                (Some(endpoint), _) => endpoint.models(within).await.map(|listed| {
                    if let Some(server) = definition.server.as_ref().filter(|_| endpoint.is_own()) {
                        server.learn(&listed);
                    }
                    // A server of the user may list few, and a public one lists models that only embed or speak.
                    let shown = listed.into_iter().filter(|it| endpoint.is_own() || it.may_answer());
                    shown.map(|Listed { name, window }| (name, window)).collect()
                }),
                (None, Some(model)) => Ok(vec![(model.clone(), None)]),
                (None, None) => Ok(Vec::new()),
            };
            (name.clone(), models)
        });
        let mut offered = Offered::default();
        for (provider, models) in join_all(asking).await {
            match models {
                Ok(models) => offered.models.extend(models.into_iter().map(|(model, window)| {
                    let facts = self.facts(&provider, &model);
                    let info = ModelInfo { window: facts.window.or(window), ..facts };
                    ModelOffer { provider: provider.clone(), model, info }
                })),
                Err(error) => offered.silent.push((provider, error)),
            }
        }
        offered
    }
}
