//! How the variants behind a seam become one type.

/// Makes an enum of the variants behind a trait. It has a constructor that chooses by a key. A variant is one line: its
/// name, its type, its key, and how it is made.
///
/// With `asks` and `tells` alone the enum has the trait: `asks` lists the methods that take `&self`, `tells` those that
/// take `&mut self`. A method that is not listed would do what the trait does by default, whatever the variant.
///
/// With `ways` the enum does not have the trait, and has what is listed as methods of its own; `ways` lists the methods
/// of [`Way`](super::Way) that become methods of a sender, compiled for each variant.
macro_rules! variants {
    (
        $(#[$doc:meta])*
        $any:ident: $seam:ident, $(#[$new:meta])* new $args:tt by $key:expr;
        $variants:tt
        asks { $($ask:tt $asked:tt -> $asks:ty;)* }
        tells { $($tell:tt $told:tt -> $tells:ty;)* }
    ) => {
        variants!(@enum [$(#[$doc])*] $any $variants);
        impl $any {
            variants!(@new [$(#[$new])*] $args $key, $any $variants);
        }
        impl $seam for $any {
            $(variants!(@ask [] $any $variants $ask $asked $asks);)*
            $(variants!(@tell [] $any $variants $tell $told $tells);)*
        }
    };
    (
        $(#[$doc:meta])*
        $any:ident: $seam:ident, $(#[$new:meta])* new $args:tt by $key:expr;
        $variants:tt
        ways { $($(#[$walk:meta])* fn $way:tt $walked:tt -> $walks:ty;)* }
        asks { $($ask:tt $asked:tt -> $asks:ty;)* }
        tells { $($tell:tt $told:tt -> $tells:ty;)* }
    ) => {
        variants!(@enum [$(#[$doc])*] $any $variants);
        impl $any {
            variants!(@new [$(#[$new])*] $args $key, $any $variants);
            $(variants!(@ask [pub(super)] $any $variants $ask $asked $asks);)*
            $(variants!(@tell [pub(super)] $any $variants $tell $told $tells);)*
        }
        impl Sender {
            $(variants!(@way [$(#[$walk])*] $any $variants $way $walked $walks);)*
        }
    };
    (@enum [$(#[$doc:meta])*] $any:ident { $($name:ident($kind:ty): $by:pat => $make:expr,)+ }) => {
        $(#[$doc])*
        pub enum $any {
            $(#[doc = concat!("`", stringify!($name), "`.")] $name($kind),)+
        }
    };
    (@new [$(#[$new:meta])*] ($($arg:ident: $type:ty),*) $key:expr,
        $any:ident { $($name:ident($kind:ty): $by:pat => $make:expr,)+ }) => {
        $(#[$new])*
        pub fn new($($arg: $type),*) -> $any {
            match $key {
                $($by => $any::$name($make),)+
            }
        }
    };
    (@ask [$($vis:tt)*] $any:ident { $($name:ident($kind:ty): $by:pat => $make:expr,)+ }
        $ask:ident ($($arg:ident: $type:ty),*) $returns:ty) => {
        #[inline]
        $($vis)* fn $ask(&self, $($arg: $type),*) -> $returns {
            variants!(@each self, $any, $ask ($($arg),*), $($name)+)
        }
    };
    (@tell [$($vis:tt)*] $any:ident { $($name:ident($kind:ty): $by:pat => $make:expr,)+ }
        $tell:ident ($($arg:ident: $type:ty),*) $returns:ty) => {
        #[inline]
        $($vis)* fn $tell(&mut self, $($arg: $type),*) -> $returns {
            variants!(@each self, $any, $tell ($($arg),*), $($name)+)
        }
    };
    (@way [$(#[$walk:meta])*] $any:ident $variants:tt $way:ident ($($arg:ident: $type:ty),*) $returns:ty) => {
        $(#[$walk])*
        pub fn $way(&mut self, $($arg: $type),*) -> $returns {
            variants!(@match self, $any $variants, $way ($($arg),*))
        }
    };
    (@match $self:ident, $any:ident { $($name:ident($kind:ty): $by:pat => $make:expr,)+ }, $way:ident $args:tt) => {
        match &mut $self.recovery {
            $($any::$name(it) => Way { core: &mut $self.core, recovery: &mut **it }.$way $args,)+
        }
    };
    (@each $self:ident, $any:ident, $method:ident $args:tt, $($name:ident)+) => {
        match $self {
            $($any::$name(it) => it.$method $args,)+
        }
    };
}

pub(super) use variants;
