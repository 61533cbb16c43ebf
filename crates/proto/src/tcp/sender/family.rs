//! The macro that combines all implementations of a trait into one enum.

/// Defines an enum of the implementations of a trait, with a constructor that selects one by a key. A variant is one
/// line: its name, its type, its key, and its constructor.
///
/// With `by_ref` and `by_mut` alone, the enum implements the trait: `by_ref` lists the methods with `&self`, `by_mut`
/// those with `&mut self`. An unlisted method would have the default of the trait for every variant.
///
/// With `dispatch` the enum does not implement the trait, and the listed methods are inherent. `dispatch` lists the
/// methods of [`SenderWith`](super::SenderWith) that become methods of a sender, compiled for each variant.
macro_rules! variants {
    (
        $(#[$doc:meta])*
        $any:ident: $seam:ident, $(#[$new:meta])* new $args:tt by $key:expr;
        $variants:tt
        by_ref { $($get:tt $get_args:tt -> $get_type:ty;)* }
        by_mut { $($set:tt $set_args:tt -> $set_type:ty;)* }
    ) => {
        variants!(@enum [$(#[$doc])*] $any $variants);
        impl $any {
            variants!(@new [$(#[$new])*] $args $key, $any $variants);
        }
        impl $seam for $any {
            $(variants!(@by_ref [] $any $variants $get $get_args $get_type);)*
            $(variants!(@by_mut [] $any $variants $set $set_args $set_type);)*
        }
    };
    (
        $(#[$doc:meta])*
        $any:ident: $seam:ident, $(#[$new:meta])* new $args:tt by $key:expr;
        $variants:tt
        dispatch { $($(#[$call_doc:meta])* fn $call:tt $call_args:tt -> $call_type:ty;)* }
        by_ref { $($get:tt $get_args:tt -> $get_type:ty;)* }
        by_mut { $($set:tt $set_args:tt -> $set_type:ty;)* }
    ) => {
        variants!(@enum [$(#[$doc])*] $any $variants);
        impl $any {
            variants!(@new [$(#[$new])*] $args $key, $any $variants);
            $(variants!(@by_ref [pub(in crate::tcp::sender)] $any $variants $get $get_args $get_type);)*
            $(variants!(@by_mut [pub(in crate::tcp::sender)] $any $variants $set $set_args $set_type);)*
        }
        impl Sender {
            $(variants!(@dispatch [$(#[$call_doc])*] $any $variants $call $call_args $call_type);)*
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
    (@by_ref [$($vis:tt)*] $any:ident { $($name:ident($kind:ty): $by:pat => $make:expr,)+ }
        $get:ident ($($arg:ident: $type:ty),*) $returns:ty) => {
        #[inline]
        $($vis)* fn $get(&self, $($arg: $type),*) -> $returns {
            variants!(@each self, $any, $get ($($arg),*), $($name)+)
        }
    };
    (@by_mut [$($vis:tt)*] $any:ident { $($name:ident($kind:ty): $by:pat => $make:expr,)+ }
        $set:ident ($($arg:ident: $type:ty),*) $returns:ty) => {
        #[inline]
        $($vis)* fn $set(&mut self, $($arg: $type),*) -> $returns {
            variants!(@each self, $any, $set ($($arg),*), $($name)+)
        }
    };
    (@dispatch [$(#[$call_doc:meta])*] $any:ident $variants:tt $call:ident ($($arg:ident: $type:ty),*) $returns:ty) => {
        $(#[$call_doc])*
        pub fn $call(&mut self, $($arg: $type),*) -> $returns {
            variants!(@match self, $any $variants, $call ($($arg),*))
        }
    };
    (@match $self:ident, $any:ident { $($name:ident($kind:ty): $by:pat => $make:expr,)+ }, $call:ident $args:tt) => {
        match &mut $self.recovery {
            $($any::$name(it) => SenderWith { core: &mut $self.core, recovery: &mut **it }.$call $args,)+
        }
    };
    (@each $self:ident, $any:ident, $method:ident $args:tt, $($name:ident)+) => {
        match $self {
            $($any::$name(it) => it.$method $args,)+
        }
    };
}

pub(super) use variants;
