package Cache::Eyewall::Error;
use v5.16;
use warnings;

our $VERSION = '0.001';

use overload '""' => sub { $_[0]->as_string }, bool => sub { 1 }, fallback => 1;

# Codes of the errors that the Perl modules throw themselves.
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

# Throws an error that names the caller's file and line outside of these modules.
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

Cache::Eyewall::Error - the exceptions of Cache::Eyewall

=head1 SYNOPSIS

    use Cache::Eyewall;
    my $cache = Cache::Eyewall->anonymous(size => 1 << 20);
    unless (eval { $cache->put(page => 'x' x 1_000_000); 1 }) {
        warn $@ unless ref $@ && $@->name eq 'entry_too_large';
    }

=head1 DESCRIPTION

The message of an error says in one sentence what went wrong and what to do. In string context, an error is its message and the
place of the call.

=head1 METHODS

=over 4

=item name

The name of the error: C<argument>, C<key_empty>, C<key_too_long>, C<metadata_too_long>, C<too_many_tags>, C<tag_length>,
C<not_a_counter>, C<entry_too_large>, C<pinned>, C<busy>, C<interrupted>, C<read_only>, C<not_found>, C<foreign>, C<version>,
C<corrupt>, C<options_differ>, C<out_of_range>, C<no_tier>, C<no_space>, C<too_many_processes>, C<failed>, C<io>, C<internal>.
F<eyewall.h> says what each means.

=item code

The number of the error in F<eyewall.h>, which is below 0.

=item message

The message.

=item file, line

Your code's file and line that made the call.

=item as_string

Message and place, as the object itself in string context.

=item throw(NAME, MESSAGE), argument(MESSAGE)

For the other modules: they throw an error, of the name C<argument> or another one.

=back

=cut
