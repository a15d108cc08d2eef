#!/usr/bin/env perl
# The procedure `modules` on the stores of Perl; the protocol and the procedure stand in bench/drivers/README.md.
use v5.26;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Driver::Main;
use Driver::Procedure::Modules;

Driver::Main::run('Driver::Procedure::Modules');
