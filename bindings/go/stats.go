package eyewall

import "unsafe"

// Stats has the statistics of a volume: present sizes, and counts since its creation over all processes. Byte counts are
// of whole records. Its memory has the form of eyewall_stats.
type Stats struct {
	// Size of the file: the hard cap.
	SizeBytes uint64
	// Bytes that entries can use: both rings of all stripes.
	DataBytes uint64
	// Bytes of the superblock, the tables and the index.
	OverheadBytes uint64
	// Number of stripes, which are independent parts of the volume.
	Stripes uint64
	// The largest accepted entry in bytes.
	EntryBytesMax uint64
	// Entries that can be found, including expired ones that aren't evicted yet.
	Entries uint64
	// Bytes of their records.
	LiveBytes uint64
	// Bytes that are neither used nor waiting to be freed.
	FreeBytes uint64
	// Unused bytes at the ends of rings and beside held entries, until the eviction hand passes.
	FillerBytes uint64
	// Bytes of overwritten, removed or unpublished records, until the eviction hand passes.
	DeadBytes uint64
	// Bytes that power loss, or copying the file, left unchecked. Puts and eyewall verify check them. Until then
	// they may be live, dead or lost, and entries is an estimate.
	UntiledBytes uint64
	// Slots of the index.
	IndexSlots uint64
	// Slots of live entries.
	IndexLive uint64
	// Slots that remember evicted entries.
	IndexGhosts uint64
	// Look-ups that found a valid entry. Neither hits nor misses count look-ups of read-only openers, or of
	// threads that found no free thread slot.
	Hits uint64
	// Look-ups that found no valid entry.
	Misses uint64
	// Hits that were copied to the heap.
	Copies uint64
	// Entries stored.
	Puts uint64
	// Entries removed or cleared.
	Removes uint64
	// Evicted because they were seldom asked for.
	EvictionsCold uint64
	// Evicted after they had expired.
	EvictionsExpired uint64
	// Evicted because their index buckets were full. A few always are; more are while entries become smaller and
	// the index grows after them.
	EvictionsIndex uint64
	// Evicted because they failed their checksum.
	EvictionsDamaged uint64
	// Dropped because they were purged.
	EvictionsPurged uint64
	// Entries promoted from the small ring to main because they were hit.
	Promotions uint64
	// Entries reinserted into main because they were hit.
	Reinsertions uint64
	// Entries that moved from small to main because main had room.
	Moved uint64
	// Bytes of the records that puts wrote.
	BytesWritten uint64
	// Bytes of the records that the three kinds of moves above copied.
	BytesCopied uint64
	// Present pins: of hits, and of large puts in progress.
	Pins uint64
	// Processes attached for writing.
	Processes uint64
	// Thread slots in use.
	Threads uint64
	// Stripes that were repaired after the process that held their lock died.
	Repairs uint64
	// Rings that were emptied because their log was damaged.
	Resets uint64
	// Puts refused because readers held too much.
	PinnedRefusals uint64
	// Operations that failed at the lock deadline.
	Busy uint64
	// Age of the most recently evicted entry, in milliseconds: the largest over all stripes.
	EvictionAgeMS uint64
	// Purges of tags, of prefixes and of everything.
	Purges uint64
	// Purges that removed more than they named because a table was full: of tags, of prefixes, of epochs.
	PurgeOverflows uint64
	// How often a process attached to the volume while no other process was attached.
	Attachments uint64
	// How often attaching emptied the volume: because the record of its age was damaged, or because the opener set
	// ClearUnclean and the volume had not been closed in order.
	UncleanDrops uint64
	// Look-ups that this process's tier answered, if it has one.
	TierHits uint64
	// The tier's maximum size in bytes.
	TierSizeBytes uint64
	// Slots that the index should have for its entries. Each put makes one step towards that number.
	IndexSlotsWanted uint64
	// Steps that the index has made; each adds or removes eight slots.
	IndexSteps uint64
}

// Stat returns the statistics. It scans the whole index, one stripe after the other.
func (c *Cache) Stat() (Stats, error) {
	share := c.begin()
	if share == nil {
		return Stats{}, ErrClosed
	}
	defer c.end(share)
	stats := new(Stats)
	_, err := call(library.statsRead, uintptr(c.handle), uintptr(unsafe.Pointer(stats)), unsafe.Sizeof(*stats))
	return *stats, err
}
