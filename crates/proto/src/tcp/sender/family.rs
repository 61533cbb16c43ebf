//! How the variants behind a seam become one type.

/// Makes an enum of the variants behind a trait. It has a constructor that chooses by a key, and each method of the
/// trait goes to the variant at hand. A variant is one line: its name, its type, its key, and how it is made.
///
/// `asks` lists the methods of the trait that take `&self`, `tells` those that take `&mut self`. A method that is not
/// listed would do what the trait does by default, whatever the variant.
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
            $(variants!(@ask $any $variants $ask $asked $asks);)*
            $(variants!(@tell $any $variants $tell $told $tells);)*
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
    (@ask $any:ident { $($name:ident($kind:ty): $by:pat => $make:expr,)+ }
        $ask:ident ($($arg:ident: $type:ty),*) $returns:ty) => {
        #[inline]
        fn $ask(&self, $($arg: $type),*) -> $returns {
            variants!(@each self, $any, $ask ($($arg),*), $($name)+)
        }
    };
    (@tell $any:ident { $($name:ident($kind:ty): $by:pat => $make:expr,)+ }
        $tell:ident ($($arg:ident: $type:ty),*) $returns:ty) => {
        #[inline]
        fn $tell(&mut self, $($arg: $type),*) -> $returns {
            variants!(@each self, $any, $tell ($($arg),*), $($name)+)
        }
    };
    (@each $self:ident, $any:ident, $method:ident $args:tt, $($name:ident)+) => {
        match $self {
            $($any::$name(it) => it.$method $args,)+
        }
    };
}

pub(super) use variants;
