package Cache::Eyewall::Error;
use v5.16;
use warnings;

our $VERSION = '0.001';

use overload '""' => sub { $_[0]->as_string }, bool => sub { 1 }, fallback => 1;

# The codes of the errors that code in Perl makes itself.
my %code = (argument => -1, busy => -10);

sub name    { $_[0]{name} }
sub code    { $_[0]{code} }
sub message { $_[0]{message} }
sub file    { $_[0]{file} }
sub line    { $_[0]{line} }

sub as_string {
    my ($self) = @_;
    return "$self->{message} at $self->{file} line $self->{line}.\n";
}

# Throws an error, with the place outside of these modules that called.
sub throw {
    my ($class, $name, $message) = @_;
    my $depth = 0;
    $depth++ while caller $depth + 1 and (caller $depth)[0] =~ /^Cache::Eyewall(?:::|\z)/;
    my (undef, $file, $line) = caller $depth;
    die bless { name => $name, code => $code{$name}, message => $message, file => $file, line => $line }, $class;
}

sub argument {
    my ($class, $message) = @_;
    return $class->throw(argument => $message);
}


1;

__END__

=encoding utf8

=head1 NAME

Cache::Eyewall::Error - what Cache::Eyewall throws

=head1 SYNOPSIS

    use Cache::Eyewall;
    my $cache = Cache::Eyewall->anonymous(size => 1 << 20);
    unless (eval { $cache->put(page => 'x' x 1_000_000); 1 }) {
        warn $@ unless ref $@ && $@->name eq 'entry_too_large';
    }

=head1 DESCRIPTION

An error says in one sentence what went wrong and what to do. As a string it is that sentence and the place in Perl that called.

=head1 METHODS

=over 4

=item name

The error's name, in small letters: C<argument>, C<key_empty>, C<key_too_long>, C<metadata_too_long>, C<too_many_tags>,
C<tag_length>, C<not_a_counter>, C<entry_too_large>, C<pinned>, C<busy>, C<interrupted>, C<read_only>, C<not_found>,
C<foreign>, C<version>, C<corrupt>, C<options_differ>, C<out_of_range>, C<no_tier>, C<no_space>, C<too_many_processes>,
C<failed>, C<io>, C<internal>. F<eyewall.h> says what each means.

=item code

The number of the same, below 0, as F<eyewall.h> has it.

=item message

The sentence.

=item file, line

The place in Perl.

=item as_string

Sentence and place, as the object itself in a string.

=item throw(NAME, MESSAGE), argument(MESSAGE)

Used by the other modules: throw an error, of C<argument> or of another name.

=back

=cut
