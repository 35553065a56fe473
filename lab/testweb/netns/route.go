package netns

import (
	"encoding/binary"
	"errors"
	"net"

	"golang.org/x/sys/unix"
)

// enableLoopback switches the interface lo on.
func enableLoopback() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		return err
	}
	return nil
}

// localDefault makes every address of a family local: what the command
// `ip route add local default dev lo` does, by one message to the kernel
// (rtnetlink(7)), so that iproute2 need not be there.
func localDefault(family uint8) error {
	lo, err := net.InterfaceByName("lo")
	if err != nil {
		return err
	}
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Sendto(fd, routeMessage(family, uint32(lo.Index)), 0, &unix.SockaddrNetlink{Family: unix.AF_NETLINK}); err != nil {
		return err
	}
	buf := make([]byte, 4096)
	n, _, err := unix.Recvfrom(fd, buf, 0)
	if err != nil {
		return err
	}
	if n < unix.NLMSG_HDRLEN+4 || binary.NativeEndian.Uint16(buf[4:]) != unix.NLMSG_ERROR {
		return errors.New("the kernel's answer is no acknowledgement")
	}
	if code := int32(binary.NativeEndian.Uint32(buf[unix.NLMSG_HDRLEN:])); code != 0 {
		return unix.Errno(-code)
	}
	return nil
}

// routeMessage is RTM_NEWROUTE for the local default route of a family.
func routeMessage(family uint8, lo uint32) []byte {
	const size = unix.NLMSG_HDRLEN + unix.SizeofRtMsg + 8
	b := make([]byte, 0, size)
	b = binary.NativeEndian.AppendUint32(b, size)
	b = binary.NativeEndian.AppendUint16(b, unix.RTM_NEWROUTE)
	b = binary.NativeEndian.AppendUint16(b, unix.NLM_F_REQUEST|unix.NLM_F_ACK|unix.NLM_F_CREATE)
	b = binary.NativeEndian.AppendUint32(b, 1) // sequence
	b = binary.NativeEndian.AppendUint32(b, 0) // port: the kernel fills it in
	b = append(b, family,
		0, 0, 0, // lengths of destination (0: default) and source, type of service
		unix.RT_TABLE_LOCAL, unix.RTPROT_BOOT, unix.RT_SCOPE_HOST, unix.RTN_LOCAL)
	b = binary.NativeEndian.AppendUint32(b, 0) // flags
	b = binary.NativeEndian.AppendUint16(b, 8) // attribute: the interface
	b = binary.NativeEndian.AppendUint16(b, unix.RTA_OIF)
	return binary.NativeEndian.AppendUint32(b, lo)
}
