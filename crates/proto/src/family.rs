//! Families of systems, of which a scenario chooses one: agents, channel models, link layers, medium access, disciplines of
//! queues.

/// Generates methods that pass the call to the variant's machine, or with `[each config]` to its configuration.
macro_rules! forward {
    ([$each:ident $($config:ident)?]) => {};
    ([$each:ident $($config:ident)?] $(#[$meta:meta])* $vis:vis fn $name:ident(&mut $self:ident $(, $given:ident: $Given:ty)*) $(-> $Out:ty)?; $($rest:tt)*) => {
        $(#[$meta])*
        $vis fn $name(&mut $self $(, $given: $Given)*) $(-> $Out)? {
            $each!($($config)? $self, own => own.$name($($given),*))
        }
        forward! { [$each $($config)?] $($rest)* }
    };
    ([$each:ident $($config:ident)?] $(#[$meta:meta])* $vis:vis fn $name:ident(&$self:ident $(, $given:ident: $Given:ty)*) $(-> $Out:ty)?; $($rest:tt)*) => {
        $(#[$meta])*
        $vis fn $name(&$self $(, $given: $Given)*) $(-> $Out)? {
            $each!($($config)? $self, own => own.$name($($given),*))
        }
        forward! { [$each $($config)?] $($rest)* }
    };
}

/// Generates from one list, with one line for each system, the enum of a family's configurations and the enum
/// of its machines. It also generates `new`, which creates a machine from a configuration, and a macro:
///
/// - `each!(machine, own => call)` evaluates `call` with `own` bound to the machine of the variant;
/// - `each!(config value, own => call)` does it with the configuration of the variant, if every variant has one;
/// - `each!(words machine)` is the list of descriptors of the variant.
///
/// A line is `Name(configuration) => machine = constructor;`, or `Name => machine = constructor;` without
/// configuration. Documentation and attributes above a line belong to the configuration.
macro_rules! family {
    (
        $dollar:tt $each:ident;
        $(#[$of_configs:meta])*
        config $Config:ident;
        $(#[$of_machines:meta])*
        $vis:vis machine $Machine:ident($($given:ident: $Given:ty),*);
        $(#[$of_words:meta])*
        words $Read:ty;
        $(
            $(#[$of_config:meta])*
            $([$file:ident])? $System:ident $(($config:ident: $Own:ty))? => $Own_machine:ty = $make:expr, $words:expr;
        )*
    ) => {
        $($(pub mod $file;)?)*

        $(#[$of_configs])*
        pub enum $Config {
            $(
                $(#[$of_config])*
                $(#[doc = concat!("See the module `", stringify!($file), "`.")])?
                $System $(($Own))?,
            )*
        }

        $(#[$of_machines])*
        $vis enum $Machine {
            $(
                #[doc = concat!("See [`", stringify!($Config), "::", stringify!($System), "`].")]
                $System($Own_machine),
            )*
        }

        impl $Machine {
            /// Creates the machine that `config` describes.
            $vis fn new(config: &$Config, $($given: $Given),*) -> $Machine {
                match config {
                    $( $Config::$System $(($config))? => $Machine::$System($make), )*
                }
            }
        }

        $(#[$of_words])*
        pub fn words() -> impl Iterator<Item = &'static $crate::describe::Descriptor<$Read>> {
            const WORDS: &[&[$crate::describe::Descriptor<$Read>]] = &[$($words),*];
            WORDS.iter().copied().flatten()
        }

        macro_rules! $each {
            (config $dollar config:expr, $dollar own:ident => $dollar call:expr) => {
                match $dollar config {
                    $( $Config::$System($dollar own) => $dollar call, )*
                }
            };
            (words $dollar machine:expr) => {
                match $dollar machine {
                    $( $Machine::$System(_) => $words, )*
                }
            };
            ($dollar machine:expr, $dollar own:ident => $dollar call:expr) => {
                match $dollar machine {
                    $( $Machine::$System($dollar own) => $dollar call, )*
                }
            };
        }
    };
}
