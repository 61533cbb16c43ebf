// The transfers of `compare.sh` in csg-htsim, through the library of that simulator: two links in a row, each a queue and
// a pipe, ACKs the other way through two links alike. Nothing is logged.
//
//   dumbbell FLOWS BYTES SECONDS MBIT1 MS1 MBIT2 MS2 QUEUE WINDOW
//
// BYTES 0 sends until the end; QUEUE is in packets, WINDOW in bytes. It writes the number of packet-hops: packets that a link has carried.

#include <cstdlib>
#include <iostream>
#include <vector>

#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

// A queue that counts what it has served: one more packet for the pipe behind it.
struct Counter : Queue {
    uint64_t served = 0;
    using Queue::Queue;
    void completeService() override {
        served++;
        Queue::completeService();
    }
};

int main(int argc, char **argv) {
    if (argc != 10) {
        std::cerr << "usage: dumbbell FLOWS BYTES SECONDS MBIT1 MS1 MBIT2 MS2 QUEUE WINDOW\n";
        return 2;
    }
    const int flows = atoi(argv[1]);
    const uint64_t bytes = strtoull(argv[2], nullptr, 10);
    EventList &events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(atof(argv[3])));
    Packet::set_packet_size(1500);
    const mem_b room = static_cast<mem_b>(atoi(argv[8])) * 1500;

    Counter *queues[4];
    Pipe *pipes[4];
    for (int i = 0; i < 4; i++) {
        const int link = i < 2 ? i : 3 - i;
        queues[i] = new Counter(speedFromMbps(atof(argv[4 + 2 * link])), room, events, nullptr);
        pipes[i] = new Pipe(timeFromMs(atof(argv[5 + 2 * link])), events);
    }

    // The simulator prints flows and timeouts on its standard output.
    std::streambuf *shown = std::cout.rdbuf(nullptr);
    TcpRtxTimerScanner scanner(timeFromMs(10), events);
    for (int i = 0; i < flows; i++) {
        auto *from = new TcpSrc(nullptr, nullptr, events);
        auto *to = new TcpSink();
        if (bytes > 0) {
            from->set_flowsize(bytes);
        }
        // As the other simulators have it: slow start up to the window of the receiver.
        from->set_ssthresh(0xffffffff);
        from->_maxcwnd = strtoul(argv[9], nullptr, 10);
        scanner.registerTcp(*from);
        auto *there = new Route();
        auto *back = new Route();
        for (int hop = 0; hop < 2; hop++) {
            there->push_back(queues[hop]);
            there->push_back(pipes[hop]);
            back->push_back(queues[2 + hop]);
            back->push_back(pipes[2 + hop]);
        }
        there->push_back(to);
        back->push_back(from);
        from->connect(*there, *back, *to, 0);
    }
    while (events.doNextEvent()) {
    }
    std::cout.rdbuf(shown);
    uint64_t hops = 0;
    for (Counter *queue : queues) {
        hops += queue->served;
    }
    std::cout << hops << std::endl;
    return 0;
}
