<?php
/**
 * Plugin Name: Eyewall object cache
 * Description: Keeps WordPress's objects in an Eyewall volume, which all PHP processes of the machine share.
 * Version: 0.1
 * License: Apache-2.0
 *
 * Copy this file to wp-content/object-cache.php; it needs no other. Constants of wp-config.php:
 *
 *   WP_EYEWALL_PATH    the volume, /var/cache/eyewall/wordpress unless given. Keep it outside of the document root
 *   WP_EYEWALL_SIZE    the size of a new volume, such as '256M'
 *   WP_CACHE_KEY_SALT  a name of the site, which keys begin with; by default it is made of the database's name and the table prefix
 *
 * If the extension is missing, or the volume can't be opened, this file defines nothing and reports the reason once. WordPress then
 * loads its own object cache, so that transients go to the database.
 *
 * The syntax is that of PHP 7.4: a site whose PHP is too old for the extension still has to load the file.
 *
 * tidy: long because administrators copy this one file, which has to work without others.
 *
 * @package eyewall
 */

if (!class_exists('Eyewall_Object_Cache', false)) {
    /**
     * WP_Object_Cache on a volume. Within a request, values stay in memory, too, as WordPress expects.
     *
     * Plugins read $cache, $cache_hits and $cache_misses. The other properties have the names that other object caches use.
     */
    class Eyewall_Object_Cache
    {
        const DEFAULT_PATH = '/var/cache/eyewall/wordpress';

        /** @var array values of this request, by group and key */
        public $cache = array();
        public $cache_hits = 0;
        public $cache_misses = 0;
        /** @var array names of groups as keys */
        public $global_groups = array();
        public $non_persistent_groups = array();
        public $multisite;
        /** @var string before the keys of groups that aren't global: the blog's number on a multisite */
        public $blog_prefix = '';
        /** @var string why the last call couldn't use the volume; empty: none failed */
        public $last_fault = '';

        /** @var \Eyewall\Cache|null the volume of the process */
        private static $opened = null;
        private static $fault = '';

        private $volume;
        /** @var string before all names of this site in the volume */
        private $site;
        /** @var object no stored value is identical to it */
        private $missing;
        /** @var array times at which values in memory expire, by group and key */
        private $deadlines = array();
        /** @var array beginnings of names in the volume, by group */
        private $prefixes = array();

        /** The volume that the constants name; null: fault() says why there is none. */
        public static function open()
        {
            if (self::$opened !== null) {
                return self::$opened;
            }
            if (!class_exists('Eyewall\Cache', false)) {
                self::$fault = sprintf('PHP (%s) has no extension eyewall. Install it for every PHP of the site, and for the command line.', PHP_SAPI);
                return null;
            }
            $path = self::path();
            $options = defined('WP_EYEWALL_SIZE') ? array('size' => WP_EYEWALL_SIZE) : array();
            try {
                try {
                    self::$opened = new \Eyewall\Cache($path, $options + array('put_aside_broken' => true));
                } catch (\Eyewall\Exception $error) {
                    if ($error->getCode() !== \Eyewall\Exception::OPTIONS_DIFFER) {
                        throw $error;
                    }
                    self::$opened = new \Eyewall\Cache($path, array('put_aside_broken' => true));
                    self::$fault = sprintf('The volume %s keeps its size, since it was created with another WP_EYEWALL_SIZE. Use `eyewall resize`, or remove the file.', $path);
                }
            } catch (\Throwable $error) {
                self::$fault = sprintf('The volume %s can\'t be opened: %s. PHP\'s user needs write permission for its folder.', $path, rtrim($error->getMessage(), '.'));
            }
            return self::$opened;
        }

        /** What the administrator should change; empty: nothing. */
        public static function fault()
        {
            return self::$fault;
        }

        public static function path()
        {
            return defined('WP_EYEWALL_PATH') ? WP_EYEWALL_PATH : self::DEFAULT_PATH;
        }

        public function __construct()
        {
            $this->volume = self::open();
            $this->site = 'wp:' . self::salt() . ':';
            $this->missing = new \stdClass();
            $this->multisite = is_multisite();
            $this->blog_prefix = $this->multisite ? get_current_blog_id() . ':' : '';
        }

        /** The volume, for plugins; null: there is none. */
        public function volume()
        {
            return $this->volume;
        }

        /** The beginning of all names and tags of this WordPress in the volume. */
        public function site_name()
        {
            return $this->site;
        }

        /** The beginning of the names of the present blog. */
        public function blog_name()
        {
            return $this->site . ($this->multisite ? $this->blog_prefix : '0:');
        }

        public function add($key, $data, $group = 'default', $expire = 0)
        {
            if (wp_suspend_cache_addition() || !$this->is_valid_key($key)) {
                return false;
            }
            list($group, $id) = $this->place($key, $group);
            // The volume decides, since another process may have removed what this one remembers.
            if ($this->is_persistent($group) && $expire >= 0) {
                try {
                    $is_added = $this->volume->add($this->name($key, $group), $data, $this->ttl($expire), $this->tags($group));
                    if ($is_added) {
                        $this->remember($id, $group, $data, $expire);
                    }
                    return $is_added;
                } catch (\Throwable $error) {
                    $this->failed($error);
                }
            }
            return $this->is_remembered($id, $group) ? false : $this->set($key, $data, $group, $expire);
        }

        public function add_multiple(array $data, $group = '', $expire = 0)
        {
            $results = array();
            foreach ($data as $key => $value) {
                $results[$key] = $this->add($key, $value, $group, $expire);
            }
            return $results;
        }

        public function replace($key, $data, $group = 'default', $expire = 0)
        {
            if (!$this->is_valid_key($key)) {
                return false;
            }
            list($group, $id) = $this->place($key, $group);
            if (!$this->is_persistent($group)) {
                return $this->is_remembered($id, $group) && $this->set($key, $data, $group, $expire);
            }
            $is_there = $this->is_remembered($id, $group);
            try {
                $is_there = $this->volume->has($this->name($key, $group));
            } catch (\Throwable $error) {
                $this->failed($error);
            }
            if (!$is_there) {
                $this->forget($id, $group);
            }
            return $is_there && $this->set($key, $data, $group, $expire);
        }

        /** Returns false if only this request has the value, since the volume can't store it. */
        public function set($key, $data, $group = 'default', $expire = 0)
        {
            if (!$this->is_valid_key($key)) {
                return false;
            }
            list($group, $id) = $this->place($key, $group);
            $expire = (int) $expire;
            if ($expire < 0) {
                $this->delete($key, $group);
                return true;
            }
            $this->remember($id, $group, $data, $expire);
            if (!$this->is_persistent($group)) {
                return true;
            }
            $name = $this->name($key, $group);
            try {
                return $this->volume->set($name, $data, $this->ttl($expire), $this->tags($group));
            } catch (\Throwable $error) {
                $this->failed($error);
            }
            // Other processes must not find the former value.
            $this->remove($name);
            return false;
        }

        public function set_multiple(array $data, $group = '', $expire = 0)
        {
            $results = array();
            foreach ($data as $key => $value) {
                $results[$key] = $this->set($key, $value, $group, $expire);
            }
            return $results;
        }

        public function get($key, $group = 'default', $force = false, &$found = null)
        {
            $found = false;
            if (!$this->is_valid_key($key)) {
                return false;
            }
            list($group, $id) = $this->place($key, $group);
            if ($this->is_persistent($group) && ($force || !$this->is_remembered($id, $group))) {
                $this->load($id, $group, $this->read($this->name($key, $group)));
            }
            return $this->recall($id, $group, $found);
        }

        public function get_multiple($keys, $group = 'default', $force = false)
        {
            $values = $names = $ids = array();
            $group = empty($group) ? 'default' : $group;
            foreach ($keys as $key) {
                $values[$key] = false;
                if (!$this->is_valid_key($key)) {
                    continue;
                }
                list(, $ids[$key]) = $this->place($key, $group);
                if ($this->is_persistent($group) && ($force || !$this->is_remembered($ids[$key], $group))) {
                    $names[$key] = $this->name($key, $group);
                }
            }
            $this->load_multiple($names, $ids, $group);
            foreach ($keys as $key) {
                if (isset($ids[$key])) {
                    $values[$key] = $this->recall($ids[$key], $group);
                }
            }
            return $values;
        }

        public function delete($key, $group = 'default', $deprecated = false)
        {
            if (!$this->is_valid_key($key)) {
                return false;
            }
            list($group, $id) = $this->place($key, $group);
            $is_there = $this->is_remembered($id, $group);
            $this->forget($id, $group);
            if (!$this->is_persistent($group)) {
                return $is_there;
            }
            return $this->remove($this->name($key, $group)) || $is_there;
        }

        public function delete_multiple(array $keys, $group = '')
        {
            $results = array();
            foreach ($keys as $key) {
                $results[$key] = $this->delete($key, $group);
            }
            return $results;
        }

        public function incr($key, $offset = 1, $group = 'default')
        {
            return $this->is_valid_key($key) ? $this->shift($key, (int) $offset, $group) : false;
        }

        public function decr($key, $offset = 1, $group = 'default')
        {
            return $this->is_valid_key($key) ? $this->shift($key, -(int) $offset, $group) : false;
        }

        /** Removes everything of this WordPress, and nothing of others that share the volume. */
        public function flush()
        {
            $this->flush_runtime();
            return $this->purge_prefix($this->site);
        }

        /** Forgets the values of this request; the volume keeps its own. */
        public function flush_runtime()
        {
            $this->cache = $this->deadlines = array();
            return true;
        }

        /** Removes a group, on all blogs of a multisite. */
        public function flush_group($group)
        {
            $group = empty($group) ? 'default' : $group;
            unset($this->cache[$group], $this->deadlines[$group]);
            try {
                $this->is_persistent($group) && $this->volume->purgeTags($this->tags($group));
                return true;
            } catch (\Throwable $error) {
                $this->failed($error);
                return false;
            }
        }

        /** Removes all of the present blog, except global groups. Without a multisite, this is the whole site. */
        public function flush_blog()
        {
            $this->flush_runtime();
            return $this->purge_prefix($this->multisite ? $this->blog_name() : $this->site);
        }

        public function add_global_groups($groups)
        {
            $this->global_groups += array_fill_keys((array) $groups, true);
            $this->prefixes = array();
        }

        public function add_non_persistent_groups($groups)
        {
            $this->non_persistent_groups += array_fill_keys((array) $groups, true);
        }

        public function switch_to_blog($blog_id)
        {
            $this->blog_prefix = $this->multisite ? (int) $blog_id . ':' : '';
            $this->prefixes = array();
        }

        public function reset()
        {
            _deprecated_function(__FUNCTION__, '3.5.0', 'WP_Object_Cache::switch_to_blog()');
            $this->cache = array_intersect_key($this->cache, $this->global_groups);
            $this->deadlines = array_intersect_key($this->deadlines, $this->global_groups);
        }

        /** Prints figures of the request, as WordPress's own class does. */
        public function stats()
        {
            printf('<p><strong>Hits:</strong> %d<br /><strong>Misses:</strong> %d<br /></p><ul>', $this->cache_hits, $this->cache_misses);
            foreach ($this->cache as $group => $values) {
                printf('<li><strong>Group:</strong> %s - %d</li>', esc_html($group), count($values));
            }
            echo '</ul>';
        }

        private static function salt()
        {
            if (defined('WP_CACHE_KEY_SALT') && WP_CACHE_KEY_SALT !== '') {
                $salt = rawurlencode(WP_CACHE_KEY_SALT);
            } else {
                $database = defined('DB_NAME') ? DB_NAME : '';
                $tables = isset($GLOBALS['table_prefix']) ? $GLOBALS['table_prefix'] : '';
                $salt = rawurlencode($database) . '-' . substr(md5(serialize(array(defined('DB_HOST') ? DB_HOST : '', $database, $tables))), 0, 8);
            }
            // A tag has 255 bytes at most.
            return strlen($salt) <= 80 ? $salt : md5($salt);
        }

        private function is_valid_key($key)
        {
            if (is_int($key) || (is_string($key) && trim($key) !== '')) {
                return true;
            }
            $caller = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS, 2)[1]['function'];
            _doing_it_wrong("WP_Object_Cache::$caller", 'A key is an integer or a string that is not empty, not ' . gettype($key) . '.', '6.1.0');
            return false;
        }

        /** The group, and the key in memory. */
        private function place($key, $group)
        {
            $group = empty($group) ? 'default' : $group;
            return array($group, isset($this->global_groups[$group]) ? $key : $this->blog_prefix . $key);
        }

        private function is_persistent($group)
        {
            return $this->volume !== null && !isset($this->non_persistent_groups[$group]);
        }

        private function name($key, $group)
        {
            if (!isset($this->prefixes[$group])) {
                $scope = $this->multisite && !isset($this->global_groups[$group]) ? $this->blog_prefix : '0:';
                $this->prefixes[$group] = $this->site . $scope . rawurlencode($group) . ':';
            }
            return $this->prefixes[$group] . $key;
        }

        private function tags($group)
        {
            $tag = $this->site . rawurlencode($group);
            return array(strlen($tag) <= 255 ? $tag : $this->site . md5($group));
        }

        private function ttl($expire)
        {
            return (int) $expire > 0 ? (float) $expire : null;
        }

        private function is_remembered($id, $group)
        {
            if (!isset($this->cache[$group]) || !array_key_exists($id, $this->cache[$group])) {
                return false;
            }
            if (isset($this->deadlines[$group][$id]) && $this->deadlines[$group][$id] <= microtime(true)) {
                $this->forget($id, $group);
                return false;
            }
            return true;
        }

        private function remember($id, $group, $data, $expire = 0)
        {
            $this->cache[$group][$id] = is_object($data) ? clone $data : $data;
            unset($this->deadlines[$group][$id]);
            if ($expire > 0) {
                $this->deadlines[$group][$id] = microtime(true) + (int) $expire;
            }
        }

        private function forget($id, $group)
        {
            unset($this->cache[$group][$id], $this->deadlines[$group][$id]);
        }

        private function recall($id, $group, &$found = null)
        {
            $found = $this->is_remembered($id, $group);
            if (!$found) {
                $this->cache_misses++;
                return false;
            }
            $this->cache_hits++;
            $data = $this->cache[$group][$id];
            return is_object($data) ? clone $data : $data;
        }

        /** Keeps what the volume returned. */
        private function load($id, $group, $data)
        {
            $this->forget($id, $group);
            if ($data !== $this->missing) {
                $this->cache[$group][$id] = $data;
            }
        }

        private function load_multiple(array $names, array $ids, $group)
        {
            if ($names === array()) {
                return;
            }
            try {
                $values = $this->volume->getMultiple(array_values($names), $this->missing);
            } catch (\Throwable $error) {
                // One of them can't be unserialized.
                $values = array();
                foreach ($names as $name) {
                    $values[$name] = $this->read($name);
                }
            }
            foreach ($names as $key => $name) {
                $this->load($ids[$key], $group, $values[$name]);
            }
        }

        private function read($name)
        {
            try {
                return $this->volume->get($name, $this->missing);
            } catch (\Throwable $error) {
                $this->failed($error);
                return $this->missing;
            }
        }

        private function remove($name)
        {
            try {
                return $this->volume->delete($name);
            } catch (\Throwable $error) {
                $this->failed($error);
                return false;
            }
        }

        private function purge_prefix($prefix)
        {
            try {
                $this->volume === null || $this->volume->purgePrefix($prefix);
                return true;
            } catch (\Throwable $error) {
                $this->failed($error);
                return false;
            }
        }

        /** Adds to a number. Other text counts as 0, and no number falls below 0. */
        private function shift($key, $offset, $group)
        {
            list($group, $id) = $this->place($key, $group);
            if ($this->is_persistent($group)) {
                try {
                    return $this->shift_stored($id, $group, $this->name($key, $group), $offset);
                } catch (\Throwable $error) {
                    $this->failed($error);
                }
            }
            if (!$this->is_remembered($id, $group)) {
                return false;
            }
            return $this->cache[$group][$id] = self::sum($this->cache[$group][$id], $offset);
        }

        /** Under a claim, so that no process loses another's step. */
        private function shift_stored($id, $group, $name, $offset)
        {
            $this->forget($id, $group);
            $claim = $this->volume->claim($name, 30.0);
            $entry = $claim->isHit() ? $this->volume->lookup($name) : null;
            if ($entry === null) {
                return false;
            }
            $sum = self::sum($entry['value'], $offset);
            if ($claim->set($sum, $entry['ttl'], $this->tags($group))) {
                $this->remember($id, $group, $sum, (int) ceil((float) $entry['ttl']));
            }
            return $sum;
        }

        private static function sum($old, $offset)
        {
            return max(0, (is_numeric($old) ? $old : 0) + $offset);
        }

        private function failed($error)
        {
            $this->last_fault = $error->getMessage();
        }
    }
}

if (!function_exists('wp_cache_init')) {
    if (Eyewall_Object_Cache::open() !== null) {
        class_alias('Eyewall_Object_Cache', 'WP_Object_Cache');

        function wp_cache_init()
        {
            $GLOBALS['wp_object_cache'] = new WP_Object_Cache();
        }

        function wp_cache_add($key, $data, $group = '', $expire = 0)
        {
            return $GLOBALS['wp_object_cache']->add($key, $data, $group, (int) $expire);
        }

        function wp_cache_add_multiple(array $data, $group = '', $expire = 0)
        {
            return $GLOBALS['wp_object_cache']->add_multiple($data, $group, (int) $expire);
        }

        function wp_cache_replace($key, $data, $group = '', $expire = 0)
        {
            return $GLOBALS['wp_object_cache']->replace($key, $data, $group, (int) $expire);
        }

        function wp_cache_set($key, $data, $group = '', $expire = 0)
        {
            return $GLOBALS['wp_object_cache']->set($key, $data, $group, (int) $expire);
        }

        function wp_cache_set_multiple(array $data, $group = '', $expire = 0)
        {
            return $GLOBALS['wp_object_cache']->set_multiple($data, $group, (int) $expire);
        }

        function wp_cache_get($key, $group = '', $force = false, &$found = null)
        {
            return $GLOBALS['wp_object_cache']->get($key, $group, $force, $found);
        }

        function wp_cache_get_multiple($keys, $group = '', $force = false)
        {
            return $GLOBALS['wp_object_cache']->get_multiple($keys, $group, $force);
        }

        function wp_cache_delete($key, $group = '')
        {
            return $GLOBALS['wp_object_cache']->delete($key, $group);
        }

        function wp_cache_delete_multiple(array $keys, $group = '')
        {
            return $GLOBALS['wp_object_cache']->delete_multiple($keys, $group);
        }

        function wp_cache_incr($key, $offset = 1, $group = '')
        {
            return $GLOBALS['wp_object_cache']->incr($key, $offset, $group);
        }

        function wp_cache_decr($key, $offset = 1, $group = '')
        {
            return $GLOBALS['wp_object_cache']->decr($key, $offset, $group);
        }

        function wp_cache_flush()
        {
            return $GLOBALS['wp_object_cache']->flush();
        }

        function wp_cache_flush_runtime()
        {
            return $GLOBALS['wp_object_cache']->flush_runtime();
        }

        function wp_cache_flush_group($group)
        {
            return $GLOBALS['wp_object_cache']->flush_group($group);
        }

        function wp_cache_supports($feature)
        {
            return in_array($feature, array('add_multiple', 'set_multiple', 'get_multiple', 'delete_multiple', 'flush_runtime', 'flush_group'), true);
        }

        function wp_cache_close()
        {
            return true;
        }

        function wp_cache_add_global_groups($groups)
        {
            $GLOBALS['wp_object_cache']->add_global_groups($groups);
        }

        function wp_cache_add_non_persistent_groups($groups)
        {
            $GLOBALS['wp_object_cache']->add_non_persistent_groups($groups);
        }

        function wp_cache_switch_to_blog($blog_id)
        {
            $GLOBALS['wp_object_cache']->switch_to_blog($blog_id);
        }

        function wp_cache_reset()
        {
            $GLOBALS['wp_object_cache']->reset();
        }
    }
    if (Eyewall_Object_Cache::fault() !== '') {
        // One line in the log, from requests that administrators make or read; each page of the site would be too many.
        if (defined('WP_ADMIN') || defined('DOING_CRON') || defined('WP_CLI')) {
            error_log('Eyewall object cache: ' . Eyewall_Object_Cache::fault());
        }
        foreach (array('admin_notices', 'network_admin_notices') as $hook) {
            add_action($hook, function () {
                if (current_user_can('manage_options')) {
                    printf('<div class="notice notice-error"><p>Eyewall object cache: %s</p></div>', esc_html(Eyewall_Object_Cache::fault()));
                }
            });
        }
    }
}
