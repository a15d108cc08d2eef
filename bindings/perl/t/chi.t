# CHI's own tests of a driver.
use v5.16;
use warnings;
use Test::More;
BEGIN { plan skip_all => 'CHI, or what its tests want, is not installed' unless eval { require CHI::t::Driver; require Test::Class; 1 } }
use lib 't/lib';
use EyewallTest;

package EyewallDriver;
use base qw(CHI::t::Driver);

my $path = EyewallTest::path();

sub testing_driver_class { 'CHI::Driver::Eyewall' }
sub supports_get_namespaces { 1 }

sub new_cache_options {
    my ($self) = @_;
    return ($self->SUPER::new_cache_options, path => $path, size => 16 << 20);
}

# Keys that other programs have put without a namespace.
sub test_keys_of_others : Tests {
    my ($self) = @_;
    my $cache = $self->new_cleared_cache;
    $cache->set(mine => 1);
    $cache->cache->put('no namespace' => 1);
    Test::More::is(scalar(grep { $_ eq 'no namespace' } $cache->get_namespaces), 0, 'are of none');
    Test::More::is_deeply([$cache->get_keys], ['mine'], 'and not listed');
    return;
}

package main;
EyewallDriver->runtests;
