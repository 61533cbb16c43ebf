//! Checks of the workspace as tests: portability, licences, links, language, sizes.
