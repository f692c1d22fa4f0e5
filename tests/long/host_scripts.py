"""The first process of the switch and of each host (``tests/long/hosts.py``), and the settings of their sshd."""

from __future__ import annotations

SHARED_MEMORY = "1g"

WAIT = "while read -r _; do :; done"  # until the pipe closes; bash reaps what its children leave behind

SWITCH = f"""
set -e
read -r pid _ < /proc/self/stat
ip link set lo up
ip link add switch type bridge
ip link set switch up
echo "$pid"
{WAIT}
"""

HOST = f"""
set -e
read -r pid _ < /proc/self/stat
mount --make-rprivate /
mount -t proc proc /proc
mount -t tmpfs -o mode=755 tmpfs /srv
mkdir /srv/home /srv/shared /srv/keys /srv/checkout
mount --bind "$FOLDER/$NAME/home" /srv/home
mount --bind "$FOLDER/shared" /srv/shared
mount --bind "$FOLDER/keys" /srv/keys
mount --bind "$CHECKOUT" /srv/checkout
mount --bind "$FOLDER/passwd" /etc/passwd
mount -t tmpfs -o size={SHARED_MEMORY} tmpfs /dev/shm
mount -t tmpfs tmpfs /run
mount --bind "$FOLDER/$NAME/tmp" /tmp
mount -o remount,bind,ro /srv/checkout
mount -o remount,bind,ro /
mkdir /run/sshd
hostname "$NAME"
ip link set lo up
echo "$pid"
read -r _  # the tester has connected the network
ip address add "$ADDRESS/24" dev eth0
ip link set eth0 up
"$SSHD" -f /srv/keys/sshd_config -o ListenAddress="$ADDRESS" -E /tmp/sshd.log
echo up
{WAIT}
"""

SSHD_CONFIG = """
HostKey /srv/keys/host
AuthorizedKeysFile /srv/keys/client.pub
PermitRootLogin prohibit-password
PasswordAuthentication no
StrictModes no
UsePAM no
PidFile none
"""
