mod debian/eyewall.ini
