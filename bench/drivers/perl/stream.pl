#!/usr/bin/env perl
# The procedure `stream` on the stores of Perl; bench/drivers/README.md describes the protocol and the procedure.
use v5.26;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";

use Driver::Main;
use Driver::Procedure::Stream;

Driver::Main::run('Driver::Procedure::Stream');
