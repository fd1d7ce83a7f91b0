# needs: python3 cp tar
# prints: set: b'https://example.org/'
# prints: listed: ['user.xdg.origin.url']
# prints: copied: b'https://example.org/'
# prints: removed: []
# prints: an ACL: Operation not supported
echo page >page
python3 - <<'END'
import os
os.setxattr("page", "user.xdg.origin.url", b"https://example.org/")
print("set:", os.getxattr("page", "user.xdg.origin.url"))
print("listed:", os.listxattr("page"))
END
cp --preserve=xattr page copy
python3 - <<'END'
import os
print("copied:", os.getxattr("copy", "user.xdg.origin.url"))
os.removexattr("copy", "user.xdg.origin.url")
print("removed:", os.listxattr("copy"))
try:
    os.setxattr("page", "system.posix_acl_access", b"\2\0\0\0")
except OSError as e:
    print("an ACL:", e.strerror)
END
