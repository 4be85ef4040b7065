//! Scrubs secrets from everything recorded, before it is hashed or written.
