"""Points, rotations and shapes."""

import numpy as np


def euler_rotation(angles):
    a, b, c = angles
    Rx = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    Ry = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    Rz = np.eye(3)
    Rz[:2, :2] = [[np.cos(c), -np.sin(c)], [np.sin(c), np.cos(c)]]
    return Rz @ Ry @ Rx


def rodrigues(v):
    theta = np.linalg.norm(v)
    if theta < 1e-8:
        return np.eye(3)
    k = v / theta
    K = np.zeros((3, 3))
    K[0, 1], K[0, 2], K[1, 2] = -k[2], k[1], -k[0]
    K = K - K.T
    return np.eye(3) + np.sin(theta) * K + (1 - np.cos(theta)) * (K @ K)


def polygon_area(vertices):
    area = 0.0
    for i in range(len(vertices)):
        x0, y0 = vertices[i]
        x1, y1 = vertices[(i + 1) % len(vertices)]
        area += x0 * y1 - x1 * y0
    return abs(area) / 2


def quaternion_rotate(q, v):
    w, x, y, z = q / np.sqrt((q * q).sum())
    u = np.array([x, y, z])
    return v + 2 * w * np.cross(u, v) + 2 * np.cross(u, np.cross(u, v))


def robot_arm(joints, lengths):
    position = np.zeros(2)
    heading = 0.0
    trail = [position.copy()]
    for angle, length in zip(joints, lengths, strict=True):
        heading += angle
        position += length * np.array([np.cos(heading), np.sin(heading)])
        trail.append(position.copy())
    return np.stack(trail)


def haversine(here, there):
    lat1, lon1 = np.radians(here)
    lat2, lon2 = np.radians(there)
    h = (
        np.sin((lat2 - lat1) / 2) ** 2
        + np.cos(lat1) * np.cos(lat2) * np.sin((lon2 - lon1) / 2) ** 2
    )
    return 6371.0 * 2 * np.arctan2(np.sqrt(h), np.sqrt(1 - h))


def distance_matrix(points):
    n = len(points)
    D = np.zeros((n, n))
    for i in range(n):
        for j in range(i):
            D[i, j] = D[j, i] = np.linalg.norm(points[i] - points[j])
    return D


def ray_hits_sphere(origin, direction, radius):
    d = direction / np.linalg.norm(direction)
    b = np.dot(origin, d)
    disc = b * b - np.dot(origin, origin) + radius**2
    if disc < 0:
        return b * 0.0 - 1.0
    near = -b - np.sqrt(disc)
    if near > 0:
        return near
    return -b + np.sqrt(disc)


def distance_to_segment(p, a, b):
    ab = b - a
    t = (p - a) @ ab / (ab @ ab)
    if t <= 0:
        return np.linalg.norm(p - a)
    elif t >= 1:
        return np.linalg.norm(p - b)
    return np.linalg.norm(p - (a + t * ab))


def clip_to_half_plane(points, offset):
    kept = []
    for k in range(len(points)):
        a, b = points[k - 1], points[k]
        if (a[0] > offset) != (b[0] > offset):
            t = (offset - a[0]) / (b[0] - a[0])
            kept.append(a + t * (b - a))
        if b[0] > offset:
            kept.append(b)
    total = 0
    for p, q in zip(kept, kept[1:] + kept[:1], strict=True):
        total += p[0] * q[1] - p[1] * q[0]
    return 0.5 * total


TRIANGLE = np.array([[0.1, 0.2], [1.5, 0.3], [0.7, 1.4]])

EXAMPLES = {
    "euler_rotation": [(np.array([0.3, -0.5, 0.9]),)],
    "rodrigues": [(np.array([0.3, -0.5, 0.9]),)],
    "polygon_area": [(TRIANGLE,), (TRIANGLE[::-1],)],
    "quaternion_rotate": [(np.array([0.9, 0.2, -0.3, 0.4]), np.array([1.0, -0.5, 2.0]))],
    "robot_arm": [(np.array([0.3, -0.5, 0.9]), np.array([1.0, 0.7, 0.4]))],
    "haversine": [(np.array([52.5, 13.4]), np.array([48.9, 2.35]))],
    "distance_matrix": [(TRIANGLE,)],
    "ray_hits_sphere": [
        (np.array([-3.0, 0.2, 0.1]), np.array([1.0, 0.1, 0.0]), 1.5),
        (np.array([0.3, 0.2, 0.1]), np.array([1.0, 0.1, 0.0]), 1.5),
    ],
    "distance_to_segment": [
        (np.array([0.5, 1.0]), np.array([0.0, 0.1]), np.array([1.0, 0.2])),
        (np.array([-0.5, 1.0]), np.array([0.0, 0.1]), np.array([1.0, 0.2])),
        (np.array([2.5, 1.0]), np.array([0.0, 0.1]), np.array([1.0, 0.2])),
    ],
    "clip_to_half_plane": [(TRIANGLE, 0.5), (TRIANGLE, 1.0)],
}
