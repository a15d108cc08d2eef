package Driver::Store::Databases;

# Key-value databases. They evict nothing and hold bytes: Storable serialises structured values.
use v5.26;
use warnings;
use Fcntl qw(O_CREAT O_RDWR);
use Storable qw(freeze thaw);

our @STORES = (
    {
        # The concurrent data store allows many readers or one writer, which suits processes that share a cache.
        name => 'BerkeleyDB', modules => ['BerkeleyDB'], package => 'libberkeleydb-perl',
        version => sub { "$_[0], Berkeley DB $BerkeleyDB::db_version" },
        open => sub {
            my ($request, $folder) = @_;
            my $env = BerkeleyDB::Env->new(
                -Home => $folder, -Cachesize => $request->{configuration}{bytes},
                -Flags => BerkeleyDB::DB_CREATE() | BerkeleyDB::DB_INIT_CDB() | BerkeleyDB::DB_INIT_MPOOL(),
            ) or die "its environment: $BerkeleyDB::Error\n";
            my $db = BerkeleyDB::Hash->new(-Filename => 'entries.db', -Env => $env, -Flags => BerkeleyDB::DB_CREATE())
                or die "its database: $BerkeleyDB::Error\n";
            return serialised($request,
                sub { $db->db_put($_[0], $_[1]) == 0 or die "put: $BerkeleyDB::Error\n" },
                sub { my $value; return $db->db_get($_[0], $value) == 0 ? $value : undef });
        },
    },
    {
        # By default it has no lock, and suits one process. Processes that share it have to lock and reopen it each
        # time, as MLDBM::Sync does.
        name => 'DB_File', modules => ['DB_File'], package => 'perl',
        version => sub { "$_[0], Berkeley DB $DB_File::db_version" },
        open => sub {
            my ($request, $folder) = @_;
            my $kind = DB_File::HASHINFO->new;
            $kind->{cachesize} = $request->{configuration}{bytes};
            my $db = tie my %entries, 'DB_File', "$folder/entries.db", O_CREAT | O_RDWR, 0640, $kind or die "open: $!\n";
            return serialised($request,
                sub { $db->put($_[0], $_[1]) == 0 or die "put: $!\n" },
                sub { my $value; return $db->get($_[0], $value) == 0 ? $value : undef });
        },
    },
    {
        name => 'Hash::SharedMem', modules => ['Hash::SharedMem'], package => 'libhash-sharedmem-perl',
        open => sub {
            my ($request, $folder) = @_;
            my $hash = Hash::SharedMem::shash_open("$folder/entries", 'rwc');
            return serialised($request,
                sub { Hash::SharedMem::shash_set($hash, $_[0], $_[1]) }, sub { Hash::SharedMem::shash_get($hash, $_[0]) });
        },
    },
    {
        # A transaction for each operation, without syncs: a cache may be lost with the power.
        name => 'LMDB_File', modules => ['LMDB_File'], package => 'liblmdb-file-perl',
        version => sub { "$_[0], " . (LMDB_File::MDB_VERSION_STRING() =~ /(\d+\.\d+\.\d+)/ ? "LMDB $1" : 'LMDB') },
        open => sub {
            my ($request, $folder) = @_;
            my $env = LMDB::Env->new($folder, {
                mapsize => 2 * $request->{configuration}{bytes}, mode => 0640,
                flags => LMDB_File::MDB_NOSYNC() | LMDB_File::MDB_NOMETASYNC(),
            });
            my $set = sub {
                my $transaction = $env->BeginTxn;
                $transaction->OpenDB->put($_[0], $_[1]);
                $transaction->commit;
            };
            my $get = sub {
                my $transaction = $env->BeginTxn(LMDB_File::MDB_RDONLY());
                return $transaction->OpenDB->get($_[0]);
            };
            return serialised($request, $set, $get);
        },
    },
    {
        # MLDBM::Sync's own form of SDBM_File, which takes values of any size. It locks and opens the files for each
        # operation.
        name => 'MLDBM::Sync', modules => ['MLDBM::Sync'], package => 'libmldbm-sync-perl',
        open => sub {
            my ($request, $folder) = @_;
            require MLDBM;
            MLDBM->import('MLDBM::Sync::SDBM_File', 'Storable');
            tie my %entries, 'MLDBM::Sync', "$folder/entries", O_CREAT | O_RDWR, 0640 or die "open: $!\n";
            return { set => sub { $entries{ $_[0] } = $_[1] }, get => sub { $entries{ $_[0] } } };
        },
    },
);

sub serialised {
    my ($request, $set, $get) = @_;
    return { set => $set, get => $get } unless $request->{is_structured};
    return {
        set => sub { $set->($_[0], freeze($_[1])) },
        get => sub { my $frozen = $get->($_[0]); return defined $frozen ? thaw($frozen) : undef },
    };
}

1;
