package eyewall

import "unsafe"

const (
	purgeHard = 0
	purgeSoft = 1
)

// PurgeTag removes all entries with this tag that any process has stored until now. It takes microseconds, however
// many entries have the tag.
func (c *Cache) PurgeTag(tag string) error {
	return c.purge(library.purgeTag, tag, purgeHard)
}

// PurgePrefix removes all entries whose keys begin with this prefix, as PurgeTag does.
func (c *Cache) PurgePrefix(prefix string) error {
	return c.purge(library.purgePrefix, prefix, purgeHard)
}

// PurgeAll removes all entries, as PurgeTag does.
func (c *Cache) PurgeAll() error {
	return c.call(library.purgeAll, purgeHard)
}

// SoftPurgeTag makes the entries with this tag stale. They stay usable for as long as their options allow.
func (c *Cache) SoftPurgeTag(tag string) error {
	return c.purge(library.purgeTag, tag, purgeSoft)
}

// SoftPurgePrefix makes the entries whose keys begin with this prefix stale, as SoftPurgeTag does.
func (c *Cache) SoftPurgePrefix(prefix string) error {
	return c.purge(library.purgePrefix, prefix, purgeSoft)
}

// SoftPurgeAll makes all entries stale, as SoftPurgeTag does.
func (c *Cache) SoftPurgeAll() error {
	return c.call(library.purgeAll, purgeSoft)
}

func (c *Cache) purge(function uintptr, which string, mode uintptr) error {
	share := c.begin()
	if share == nil {
		return ErrClosed
	}
	defer c.end(share)
	_, err := call(function, uintptr(c.handle), uintptr(address(which)), uintptr(len(which)), mode)
	return err
}

// Now returns the present moment, for [BegunIn]. Every purge after it removes an entry that is put with it.
func (c *Cache) Now() (Epoch, error) {
	share := c.begin()
	if share == nil {
		return Epoch{}, ErrClosed
	}
	defer c.end(share)
	epoch := new(Epoch)
	_, err := call(library.now, uintptr(c.handle), uintptr(unsafe.Pointer(epoch)))
	return *epoch, err
}
